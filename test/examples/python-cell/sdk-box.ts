import { eq, sql } from "drizzle-orm";
import type { ClaimTransaction } from "../../../src/users/cell/index.ts";
import { isLeaseholdError } from "../../../src/users/client/index.ts";
import type { Tx } from "../../users/cell/scenarios/dialect.ts";
import type { FaultyFetch } from "../../../src/users/cell/conformance/faulty-fetch.ts";
import type { TestedCell } from "../../users/cell/scenarios/drizzle.ts";
import {
  BoxError,
  type BlackBox,
  type Counts,
  type Moments,
  type ReconcileOptions,
  type Step,
  type VerifyOptions,
  type VerifyResult,
} from "./black-box.ts";

const S = 1_000;

/** The SDK, with the same steps as the example. */
export class SdkBox implements BlackBox {
  readonly #tested: TestedCell;

  constructor(tested: TestedCell) {
    this.#tested = tested;
  }

  get network(): FaultyFetch {
    return this.#tested.network;
  }

  async transaction(steps: Step[], moments: Moments = {}): Promise<{ results: unknown[]; noted: unknown[] }> {
    const noted: unknown[] = [];
    const restore = this.#apply(moments, noted);
    try {
      const results = await this.#tested.cell.transaction(async (tx) => {
        const all = [];
        for (const step of steps) all.push(await this.#run(tx, step));
        return all;
      });
      return { results, noted };
    } catch (error) {
      throw new BoxError(codeOf(error), String(error));
    } finally {
      restore();
    }
  }

  async reconcile(options: ReconcileOptions = {}): Promise<Counts> {
    const { counters } = await this.#tested.cell.reconcile(inMs(options));
    const { committed, rolledBack, pending, orphaned, contradicted, failed } = counters;
    return { committed, rolledBack, pending, orphaned, contradicted, failed };
  }

  async verify({ apply, maxChanges }: VerifyOptions): Promise<VerifyResult> {
    const options = { apply, maxChanges, maxShare: 1, recentMs: 0, startOver: true };
    const { status, counts } = await this.#tested.cell.verify(options);
    return { status, duplicates: counts.duplicates };
  }

  fence(lease: string): Promise<string> {
    return this.#tested.database.fence(lease);
  }

  saveHistory(): Promise<void> {
    return this.#tested.cell.flush();
  }

  async events(): Promise<string[]> {
    return this.#tested.events.map((event) =>
      event.kind === "reconcile_finding" ? event.finding.kind : event.kind,
    );
  }

  async close(): Promise<void> {}

  /** Answers a function that ends what happens at the moments. */
  #apply({ commit, reconcileBeforeCommit, fenceFirst }: Moments, noted: unknown[]): () => void {
    const { database } = this.#tested;
    const run = database.run.bind(database);
    const insertLease = database.insertLease.bind(database);
    if (commit !== undefined || reconcileBeforeCommit !== undefined)
      database.run = async (body) => {
        const ran = await run(async (tx) => {
          const value = await body(tx);
          if (reconcileBeforeCommit !== undefined) noted.push(await this.reconcile(reconcileBeforeCommit));
          if (commit === "lost_undone") throw new Error("undone");
          return value;
        });
        return commit === undefined ? ran : { kind: "unknown", error: new Error("connection lost") };
      };
    if (fenceFirst === true)
      database.insertLease = async (tx, lease) => {
        noted.push(await database.fence(lease.uuid));
        await insertLease(tx, lease);
      };
    return () => Object.assign(database, { run, insertLease });
  }

  async #run(tx: ClaimTransaction<Tx>, step: Step): Promise<unknown> {
    const { tables } = this.#tested.dialect;
    switch (step[0]) {
      case "insert":
        return tx.insert(tables[step[1]], step[2] as never);
      case "update":
        return tx.update(tables[step[1]], eq(tables[step[1]].id, step[2]), step[3]);
      case "delete":
        return tx.delete(tables[step[1]], eq(tables[step[1]].id, step[2]));
      case "sql":
        return tx.db.execute(sql.raw(step[1]));
      case "undone":
        return tx.db
          .transaction(async () => {
            for (const each of step[1]) await this.#run(tx, each);
            throw new Error("undone");
          })
          .catch(() => {});
      case "spoil":
        return tx.db.execute(sql`SELECT 1 / 0`).catch(() => {});
      case "fail":
        throw new Error("a bug");
    }
  }
}

const inMs = ({
  full,
  commitGraceS,
  staleS,
  orphanS,
}: ReconcileOptions): Record<string, number | boolean> => ({
  ...(full === undefined ? {} : { full }),
  ...(commitGraceS === undefined ? {} : { commitGraceMs: commitGraceS * S }),
  ...(staleS === undefined ? {} : { staleMs: staleS * S }),
  ...(orphanS === undefined ? {} : { orphanMs: orphanS * S }),
});

const codeOf = (error: unknown): string => (isLeaseholdError(error) ? error.code : "OTHER");

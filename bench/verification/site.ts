import { join } from "node:path";
import { Deployment } from "../growth/deployment.ts";
import { variantOf } from "../growth/variants.ts";
import { RoutesDatabase } from "./database.ts";
import { forgetPeaks, runtimeMemory } from "./memory.ts";
import { runProgram, type CellAccess, type ResourceUsage, type VerifyTask } from "./program.ts";
import { CELL } from "./routes.ts";
import type { Key, Result } from "./results.ts";

export const SHARDS = 16;
const EXAMPLES = 3;

/** A coordinator and the database of one cell. */
export class Site {
  readonly database: RoutesDatabase;
  readonly #deployment: Deployment;
  readonly #access: CellAccess;

  private constructor(deployment: Deployment, database: RoutesDatabase, access: CellAccess) {
    this.#deployment = deployment;
    this.database = database;
    this.#access = access;
  }

  /** Starts a coordinator with `claims` claims, and an empty database. No other site may use `root`. */
  static async start(root: string, claims: number): Promise<Site> {
    const databaseFolder = join(root, "database");
    const database = await RoutesDatabase.start(databaseFolder);
    try {
      const deployment = await Deployment.start(root, variantOf({ claims, cells: 1, shards: SHARDS }));
      const { url, keys } = deployment.serving;
      return new Site(deployment, database, { url, key: keys[CELL] ?? "", databaseFolder });
    } catch (error) {
      await database.stop();
      throw error;
    }
  }

  async verify(
    key: Key,
    options: Omit<VerifyTask, keyof CellAccess | "digests">,
  ): Promise<Omit<Result, "commit">> {
    const { used, ...around } = await this.#measured(() =>
      runProgram("verify", { ...this.#access, ...options, digests: key.digests }),
    );
    const { report, ...figures } = used;
    const { counts, items, status } = report;
    if (status !== "done")
      throw new Error(`a verification ended with ${status}: ${report.approvalReason ?? ""}`);
    const decided = Map.groupBy(
      items.filter(({ skipReason }) => skipReason !== undefined),
      ({ skipReason }) => skipReason,
    );
    const examples = [...decided].flatMap(([skipReason, found]) =>
      found.slice(0, EXAMPLES).map((item) => `${skipReason}: ${item.bucket.value}${detailOf(item)}`),
    );
    return { ...key, ...figures, ...around, rows: counts.rows, counts, examples };
  }

  async export(): Promise<Omit<Result, "commit">> {
    const { used, ...around } = await this.#measured(() => runProgram("export", this.#access));
    const { records, ...figures } = used;
    return { part: "export", drift: 0, digests: false, ...figures, ...around, rows: records };
  }

  async #measured<T extends ResourceUsage>(run: () => Promise<T>) {
    const { pid } = this.#deployment;
    forgetPeaks(pid);
    const [before, cpuBefore] = [runtimeMemory(pid), this.#deployment.cpuSeconds()];
    const used = await run();
    const coordinator = { before, after: runtimeMemory(pid) };
    return { used, errors: 0, coordinator, coordinatorCpuSeconds: this.#deployment.cpuSeconds() - cpuBefore };
  }

  async stop(): Promise<void> {
    await Promise.all([this.#deployment.stop(), this.database.stop()]);
  }
}

const detailOf = ({ detail, claim }: { detail?: string; claim?: { value: string } }): string =>
  detail === undefined ? (claim === undefined ? "" : ` (claimed as ${claim.value})`) : ` (${detail})`;

import type { TestedCoordinator } from "../../users/cell/scenarios/drizzle.ts";
import type { FaultyFetch } from "../../../src/users/cell/conformance/faulty-fetch.ts";
import type {
  BlackBox,
  Counts,
  Moments,
  ReconcileOptions,
  Step,
  Values,
  VerifyOptions,
  VerifyResult,
} from "./black-box.ts";
import { FaultProxy } from "./fault-proxy.ts";
import { PythonProcess, type PythonTable } from "./python-process.ts";

/** The declarations of src/users/cell/conformance/schema.ts. */
const tables: readonly PythonTable[] = [
  {
    name: "users",
    source: "RAILS_TABLE_USERS",
    subject: "USER",
    columns: { id: "USER_IDS", username: "USERNAMES" },
  },
  {
    name: "emails",
    source: "RAILS_TABLE_EMAILS",
    subject: "USER",
    subject_id: "owner",
    columns: { email: "EMAILS" },
    when: "confirmed",
  },
  {
    name: "organizations",
    source: "RAILS_TABLE_ORGANIZATIONS",
    subject: "ORGANIZATION",
    columns: { path: "ORGANIZATION_PATH" },
  },
];

interface PythonReport {
  status: string;
  counts: Record<string, number>;
}

/** The cell of the example, in a process of its own. */
export class PythonBox implements BlackBox {
  readonly proxy: FaultProxy;
  readonly #process: PythonProcess;

  private constructor(proxy: FaultProxy, process: PythonProcess) {
    this.proxy = proxy;
    this.#process = process;
  }

  static async start(id: string, coordinator: TestedCoordinator, databaseUrl: string): Promise<PythonBox> {
    const proxy = new FaultProxy(coordinator);
    const url = await proxy.start();
    const key = coordinator.keys.cell(id);
    const config = { url, key, cell: id, database_url: databaseUrl, tables };
    return new PythonBox(proxy, new PythonProcess().configure(config));
  }

  get network(): FaultyFetch {
    return this.proxy.network;
  }

  install(): Promise<void> {
    return this.#process.request("install");
  }

  transaction(
    steps: Step[],
    { commit, reconcileBeforeCommit, fenceFirst = false }: Moments = {},
  ): Promise<{ results: unknown[]; noted: unknown[] }> {
    return this.#process.request("transaction", {
      steps,
      fence_first: fenceFirst,
      ...(commit === undefined ? {} : { commit }),
      ...(reconcileBeforeCommit === undefined
        ? {}
        : { reconcile_before_commit: optionsOf(reconcileBeforeCommit) }),
    });
  }

  async reconcile(options: ReconcileOptions = {}): Promise<Counts> {
    const counts = await this.#process.request<Record<string, number>>("reconcile", optionsOf(options));
    const of = (name: string): number => counts[name] ?? 0;
    return {
      committed: of("committed"),
      rolledBack: of("rolled_back"),
      pending: of("pending"),
      orphaned: of("orphaned"),
      contradicted: of("contradicted"),
      failed: of("failed"),
    };
  }

  async verify({ apply, maxChanges }: VerifyOptions): Promise<VerifyResult> {
    const options = { apply, max_changes: maxChanges, recent_s: 0 };
    const { status, counts } = await this.#process.request<PythonReport>("verify", options);
    return { status, duplicates: counts["duplicate"] ?? 0 };
  }

  fence(lease: string): Promise<string> {
    return this.#process.request("fence", { lease });
  }

  saveHistory(): Promise<void> {
    return this.#process.request("save_history");
  }

  async events(): Promise<string[]> {
    return (await this.#process.request<{ kind: string }[]>("events")).map(({ kind }) => kind);
  }

  async close(): Promise<void> {
    await this.#process.kill();
    await this.proxy.stop();
  }
}

const optionsOf = ({ full, commitGraceS, staleS, orphanS }: ReconcileOptions): Values =>
  Object.fromEntries(
    Object.entries({ full, commit_grace_s: commitGraceS, stale_s: staleS, orphan_s: orphanS }).filter(
      ([, value]) => value !== undefined,
    ),
  );

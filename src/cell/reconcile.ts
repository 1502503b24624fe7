import { describeFailure, unknown, type Answer } from "../client/answer.ts";
import { inParallel } from "./in-parallel.ts";
import { isUnknownLease, type LeaseState } from "./remote-leases.ts";

export interface LocalLease {
  /** In lower case, as the coordinator answers it: another spelling would look like a lease that was never saved. */
  uuid: string;
  /** Since it was saved, by the database's clock. */
  ageMs: number;
  /** Still to be begun, by those that give up names later: see `DeferredLeases`. */
  isDeferred?: boolean;
}

/**
 * The cell's table of outstanding leases. A row is written in the same local transaction as the rows that the lease is for, so that it is
 * there exactly when they were saved: its presence decides between commit and rollback. Reads must come from the primary, never a replica.
 */
export interface LocalLeases {
  /** Those that were saved and begun, in the order of their UUIDs, after `afterUuid` ("" for the first page). An empty page is the last one. */
  list(page: { afterUuid: string; limit: number }): Promise<LocalLease[]>;
  /** Those of `uuids` that were saved, also if they are still to be begun. */
  has(uuids: readonly string[]): Promise<LocalLease[]>;
  /** Fine when it is gone already. */
  remove(uuid: string): Promise<void>;
  /**
   * Writes a row in the lease's place, unless there is one, so that no local transaction can save the lease any more: `fenced`. When one has,
   * `saved`; while one is about to, and does not end in time, `in_flight`.
   */
  fence(uuid: string): Promise<"fenced" | "saved" | "in_flight">;
  /** Removes fences that are older: no local transaction lives that long. Answers how many. */
  removeFences(olderThanMs: number): Promise<number>;
  /** Puts the rows that the lease was for into the verification queue, and removes the lease's own: in one local transaction. */
  queueForVerification(uuid: string): Promise<void>;
}

interface RemoteLease {
  uuid: string;
  /** By the coordinator's clock, so that the cell's own does not matter. */
  ageMs: number;
}

export interface RemotePageRequest {
  /** "" for the first page. */
  pageToken: string;
  pageSize: number;
  createdAfterMs?: number;
}

export interface RemoteLeasePage {
  leases: RemoteLease[];
  /** "" on the last page. */
  nextPageToken: string;
}

/** The cell's leases at the coordinator. */
export interface RemoteLeases {
  /** GRANTED leases only. Throws rather than leave anything out. */
  list(page: RemotePageRequest): Promise<RemoteLeasePage>;
  get(uuid: string): Promise<Answer<LeaseState>>;
  commit(uuid: string): Promise<Answer<LeaseState>>;
  rollback(uuid: string): Promise<Answer<LeaseState>>;
}

export interface ReconcileOptions {
  /** A saved lease that is younger than this is left to the process that saved it, which is about to commit it. */
  commitGraceMs: number;
  /** A lease that was not saved for this long is given up: fenced, then rolled back. A local transaction that is still about to save it fails. */
  staleMs: number;
  /** How far back a run looks that is not full. At least `orphanMs`. */
  windowMs: number;
  /** A local row that is older than this, and has no lease, needs a closer look. */
  orphanMs: number;
  /** Looks at everything, and at local rows without a lease as well. Meant for about once an hour. */
  full: boolean;
  pageSize: number;
  /** Leases that are settled at a time. */
  concurrency: number;
  /** How long a fence stays: longer than any local transaction can last. */
  fenceMs: number;
}

export const reconcileDefaults: Readonly<ReconcileOptions> = {
  commitGraceMs: 60_000,
  staleMs: 600_000,
  windowMs: 7_200_000,
  orphanMs: 3_600_000,
  full: false,
  pageSize: 100,
  concurrency: 8,
  fenceMs: 86_400_000,
};

export interface ReconcileCounters {
  /** Leases and local rows that were looked at, each once. */
  processed: number;
  committed: number;
  rolledBack: number;
  /** Not saved here, and too young to be given up. */
  pending: number;
  /** Local rows whose lease had been committed all along: only the row had stayed behind. */
  orphaned: number;
  /** Saved here, but rolled back or not known there: its rows are queued for verification. Should be zero, always. */
  contradicted: number;
  failed: number;
}

export type Finding =
  /** The cell's rows and the coordinator disagree: another cell may have the names. The rows are put into the verification queue, for somebody to look at. */
  | { kind: "contradicted"; uuid: string; coordinator: "ROLLED_BACK" | "NOT_FOUND" }
  /** Left for the next run. */
  | {
      kind: "failed";
      uuid: string;
      step: "commit" | "rollback" | "get" | "remove" | "check" | "fence" | "queue";
      error: string;
    };

export interface ReconcileResult {
  counters: ReconcileCounters;
  findings: Finding[];
}

export interface ReconcilePorts {
  local: LocalLeases;
  remote: RemoteLeases;
  /** Hears of every finding at once. It should be loud: a contradiction means that a name may have two owners. */
  report: (finding: Finding) => void;
  nowMs?: () => number;
}

/** A list could not be read to its end. What was settled before stays settled; what the rest holds is not known. */
export class ReconcileAborted extends Error {
  readonly result: ReconcileResult;

  constructor(cause: unknown, result: ReconcileResult) {
    super(`the reconciliation was aborted: ${cause instanceof Error ? cause.message : String(cause)}`, {
      cause,
    });
    this.name = "ReconcileAborted";
    this.result = result;
  }
}

/**
 * Recovers interrupted leases: commits those that the cell saved, and rolls back those that it never saved.
 *
 *     here        there: GRANTED                              there: not outstanding
 *     saved       commit, once older than `commitGraceMs`     full run, older than `orphanMs`: ask;
 *                                                             COMMITTED → remove the row
 *     not saved   fence, then roll back, once older           –
 *                 than `staleMs`
 *
 * Run it about once a minute. Runs may overlap and may follow any crash, because the first decision about a lease
 * wins and all others see it. A failure with one lease is counted, reported and left to the next run.
 * `cell.reconcile()` calls this function; call it yourself only with a `LocalLeases` of your own.
 *
 * @throws {ReconcileAborted} When a list cannot be read to its end.
 *
 * @example
 * ```ts
 * import { ClientLeases, reconcile, type LocalLeases } from "leasehold/cell";
 *
 * declare const local: LocalLeases; // reads and writes your table of outstanding leases
 * const { counters } = await reconcile({
 *   local,
 *   remote: new ClientLeases(client),
 *   report: (finding) => console.error(finding),
 * });
 * if (counters.contradicted > 0) console.error("another cell may own names of saved rows");
 * ```
 */
export async function reconcile(
  ports: ReconcilePorts,
  given: Partial<ReconcileOptions> = {},
): Promise<ReconcileResult> {
  const run = new Run(ports, checked({ ...reconcileDefaults, ...given }));
  try {
    await run.overLeases();
    // Only after every lease was seen, so that a row whose lease is merely on a later page is not taken for one without.
    if (run.options.full) {
      await run.overRows();
      await ports.local.removeFences(run.options.fenceMs);
    }
  } catch (error) {
    throw new ReconcileAborted(error, run.result);
  }
  return run.result;
}

function checked(options: ReconcileOptions): ReconcileOptions {
  for (const [name, value] of Object.entries(options)) {
    if ((name !== "full" && !Number.isSafeInteger(value)) || value < 0)
      throw new RangeError(`${name} must be a whole number`);
  }
  if (options.pageSize < 1 || options.concurrency < 1)
    throw new RangeError("pageSize and concurrency must be at least 1");
  // Otherwise a row could be called an orphan while its lease is too old to be seen.
  if (options.windowMs < options.orphanMs) throw new RangeError("windowMs must be at least orphanMs");
  return options;
}

class Run {
  readonly options: ReconcileOptions;
  readonly result: ReconcileResult;
  readonly #ports: ReconcilePorts;
  readonly #now: () => number;
  /** A lease of a finding is not looked at twice in one run. */
  readonly #found = new Set<string>();

  constructor(ports: ReconcilePorts, options: ReconcileOptions) {
    this.options = options;
    this.#ports = ports;
    this.#now = ports.nowMs ?? Date.now;
    const counters = {
      processed: 0,
      committed: 0,
      rolledBack: 0,
      pending: 0,
      orphaned: 0,
      contradicted: 0,
      failed: 0,
    };
    this.result = { counters, findings: [] };
  }

  async overLeases(): Promise<void> {
    const { local, remote } = this.#ports;
    const { full, windowMs, pageSize, concurrency } = this.options;
    const from = full ? {} : { createdAfterMs: this.#now() - windowMs };
    const tokens = new Set<string>();
    for (let pageToken = ""; ;) {
      const { leases, nextPageToken } = await remote.list({ pageToken, pageSize, ...from });
      // Read after the lease was: a row that is written later than this belongs to a begin that is not stale.
      const saved = new Map((await local.has(leases.map(({ uuid }) => uuid))).map((row) => [row.uuid, row]));
      await inParallel(leases, concurrency, (lease) => this.#settle(lease, saved.get(lease.uuid)));
      if (nextPageToken === "") return;
      if (tokens.has(nextPageToken)) throw new Error("the listing of leases repeats itself");
      tokens.add(nextPageToken);
      pageToken = nextPageToken;
    }
  }

  async overRows(): Promise<void> {
    const { local } = this.#ports;
    const { pageSize, concurrency, orphanMs } = this.options;
    for (let afterUuid = ""; ;) {
      const rows = await local.list({ afterUuid, limit: pageSize });
      const last = rows.at(-1);
      if (last === undefined) return;
      if (last.uuid === afterUuid) throw new Error("the list of local rows repeats itself");
      afterUuid = last.uuid;
      const old = rows.filter(({ uuid, ageMs }) => ageMs >= orphanMs && !this.#found.has(uuid));
      await inParallel(old, concurrency, (row) => this.#inspect(row));
    }
  }

  /** An outstanding lease. */
  async #settle({ uuid, ageMs }: RemoteLease, saved: LocalLease | undefined): Promise<void> {
    const { commitGraceMs, staleMs } = this.options;
    this.result.counters.processed += 1;
    if (saved === undefined) {
      if (ageMs >= staleMs) await this.#giveUp(uuid);
      else this.result.counters.pending += 1;
      return;
    }
    // A row from the future says that the clock was set back; then the lease's own age has to do.
    if ((saved.ageMs < 0 ? ageMs : saved.ageMs) >= commitGraceMs) await this.#commit(uuid);
  }

  /** An old local row whose lease is not outstanding: there is only its outcome left to ask for. */
  async #inspect({ uuid }: LocalLease): Promise<void> {
    this.result.counters.processed += 1;
    const answer = await certain(() => this.#ports.remote.get(uuid));
    if (answer.kind === "ok" && answer.value === "COMMITTED") {
      if (await this.#remove(uuid)) this.result.counters.orphaned += 1;
    } else if (answer.kind === "ok" && answer.value === "GRANTED") await this.#commit(uuid);
    else if (answer.kind === "ok") await this.#contradicted(uuid, "ROLLED_BACK");
    else if (isUnknownLease(answer)) await this.#contradicted(uuid, "NOT_FOUND");
    else this.#failed(uuid, "get", describeFailure(answer));
  }

  async #commit(uuid: string): Promise<void> {
    const answer = await certain(() => this.#ports.remote.commit(uuid));
    if (answer.kind === "ok") {
      this.result.counters.committed += 1;
      await this.#remove(uuid);
    } else if (answer.kind === "refused" && answer.reason === "LEASE_ROLLED_BACK")
      await this.#contradicted(uuid, "ROLLED_BACK");
    else if (isUnknownLease(answer)) await this.#contradicted(uuid, "NOT_FOUND");
    else this.#failed(uuid, "commit", describeFailure(answer));
  }

  /** Only what can no longer be saved may be rolled back: without the fence a slow local transaction could still commit after it. */
  async #giveUp(uuid: string): Promise<void> {
    let fence: Awaited<ReturnType<LocalLeases["fence"]>>;
    try {
      fence = await this.#ports.local.fence(uuid);
    } catch (error) {
      return this.#failed(uuid, "fence", messageOf(error));
    }
    if (fence === "fenced") await this.#rollBack(uuid);
    // Saved this very moment, or about to be: its own process commits it, or the next run.
    else this.result.counters.pending += 1;
  }

  async #rollBack(uuid: string): Promise<void> {
    const answer = await certain(() => this.#ports.remote.rollback(uuid));
    if (answer.kind === "ok") this.result.counters.rolledBack += 1;
    // Its row came and went before the fence: the lease was saved after all, and somebody committed it. All is well.
    else if (answer.kind === "refused" && answer.reason === "LEASE_COMMITTED") return;
    else this.#failed(uuid, "rollback", describeFailure(answer));
  }

  async #remove(uuid: string): Promise<boolean> {
    try {
      await this.#ports.local.remove(uuid);
      return true;
    } catch (error) {
      this.#failed(uuid, "remove", messageOf(error));
      return false;
    }
  }

  /** Looks again before it cries wolf: another run, or the lease's own process, may have removed the row meanwhile. */
  async #contradicted(uuid: string, coordinator: "ROLLED_BACK" | "NOT_FOUND"): Promise<void> {
    try {
      const [row] = await this.#ports.local.has([uuid]);
      // What is still to be begun begins anew, under another UUID (see `DeferredLeases`).
      if (row === undefined || row.isDeferred === true) return;
    } catch (error) {
      return this.#failed(uuid, "check", messageOf(error));
    }
    this.result.counters.contradicted += 1;
    this.#find({ kind: "contradicted", uuid, coordinator });
    try {
      await this.#ports.local.queueForVerification(uuid);
    } catch (error) {
      // Its row stays, and the next run meets the same contradiction.
      this.#failed(uuid, "queue", messageOf(error));
    }
  }

  #failed(uuid: string, step: Extract<Finding, { kind: "failed" }>["step"], error: string): void {
    this.result.counters.failed += 1;
    this.#find({ kind: "failed", uuid, step, error });
  }

  #find(finding: Finding): void {
    this.#found.add(finding.uuid);
    this.result.findings.push(finding);
    this.#ports.report(finding);
  }
}

/** What a port throws is an unknown outcome like any other. */
async function certain(call: () => Promise<Answer<LeaseState>>): Promise<Answer<LeaseState>> {
  try {
    return await call();
  } catch (error) {
    return unknown(messageOf(error));
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

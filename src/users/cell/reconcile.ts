import { describeFailure, unknownFrom, type Answer } from "../client/answer.ts";
import { invalidArgument, reasonOf } from "./errors.ts";
import { inParallel } from "./in-parallel.ts";
import { isUnknownLease, type LeaseState, type RemoteLease, type RemoteLeases } from "./remote-leases.ts";

export interface LocalLease {
  /**
   * In lower case, like the coordinator's. In another spelling, the lease would look as if it was never
   * saved.
   */
  uuid: string;
  /** Time since it was saved, by the database's clock. */
  ageMs: number;
  /** Not begun yet: see `DeferredLeases`. */
  isDeferred?: boolean;
}

/**
 * The cell's table of outstanding leases. A lease's row is written in the same local transaction as the rows
 * that the lease is for. Its presence proves that they were saved, and decides between commit and rollback.
 * Reads must come from the primary, never from a replica.
 */
export interface LocalLeases {
  /**
   * Answers saved leases that are not deferred, by UUID, after `afterUuid` ("" for the first page). An empty
   * page is the last.
   */
  list(page: { afterUuid: string; limit: number }): Promise<LocalLease[]>;
  /** Answers which of `uuids` were saved, including deferred ones. */
  has(uuids: readonly string[]): Promise<LocalLease[]>;
  /** Does nothing if it is already gone. */
  remove(uuid: string): Promise<void>;
  /**
   * Writes a fence in place of the lease's row, so that no local transaction can save the lease any more:
   * `fenced`. Answers `saved` if the row exists, and `in_flight` if a transaction is writing it and does not
   * end in time.
   */
  fence(uuid: string): Promise<"fenced" | "saved" | "in_flight">;
  /** Removes older fences, because no local transaction lasts that long. Answers how many. */
  removeFences(olderThanMs: number): Promise<number>;
  /** In one local transaction, queues the rows of the lease for verification and removes the lease's row. */
  queueForVerification(uuid: string): Promise<void>;
}

export interface ReconcileOptions {
  /** A younger saved lease is left to its own process, which is about to commit it. 60 s by default. */
  commitGraceMs: number;
  /**
   * A lease that was neither saved nor renewed for this long is stale: it is fenced, then rolled back. A
   * local transaction that tries to save it afterwards fails. 10 min by default.
   */
  staleMs: number;
  /** How far back a run looks that is not full: 2 h by default. At least `orphanMs`. */
  windowMs: number;
  /** In a full run, an older local row without an outstanding lease is checked: 10 min by default. */
  orphanMs: number;
  /** Reads all leases, and local rows without an outstanding lease. Do this about every 10 minutes. */
  full: boolean;
  pageSize: number;
  /** How many leases are reconciled at a time. */
  concurrency: number;
  /** How long fences are kept: longer than any local transaction can last. 24 h by default. */
  fenceMs: number;
}

export const reconcileDefaults: Readonly<ReconcileOptions> = {
  commitGraceMs: 60_000,
  staleMs: 600_000,
  windowMs: 7_200_000,
  orphanMs: 600_000,
  full: false,
  pageSize: 100,
  concurrency: 8,
  fenceMs: 86_400_000,
};

export interface ReconcileCounters {
  /** Leases and local rows that were checked. */
  processed: number;
  committed: number;
  rolledBack: number;
  /** Leases that are not saved, and not stale yet. */
  pending: number;
  /** Local rows that remained although their lease was committed. They were removed. */
  orphaned: number;
  /**
   * Saved leases that the coordinator rolled back or does not know. Their rows are queued. Should always be
   * 0.
   */
  contradicted: number;
  failed: number;
}

export type Finding =
  /**
   * The rows are saved, but the coordinator has no such lease, or rolled it back. They are queued for
   * verification.
   */
  | { kind: "contradicted"; uuid: string; coordinator: "ROLLED_BACK" | "NOT_FOUND" }
  /** Left to the next run. */
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
  /** Called for each finding. Raise an alarm for a contradiction: a name may have two owners. */
  report: (finding: Finding) => void;
  nowMs?: () => number;
}

/**
 * A list could not be read to its end. Leases before that were reconciled; the others are left to the next
 * run.
 */
export class ReconcileAborted extends Error {
  readonly result: ReconcileResult;

  constructor(cause: unknown, result: ReconcileResult) {
    super(`reconciliation was aborted: ${reasonOf(cause)}`, {
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
 * Run it about once a minute. Runs may overlap and may follow any crash, because the first decision about a
 * lease wins and all others see it. A failure with one lease is counted, reported and left to the next run.
 * `cell.reconcile()` calls this function; call it yourself only with a `LocalLeases` of your own.
 *
 * @throws {ReconcileAborted} When a list cannot be read to its end.
 * @throws {InvalidArgumentError} When an option is out of range.
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
  const run = new ReconcileRun(ports, checked({ ...reconcileDefaults, ...given }));
  try {
    await run.reconcileLeases();
    // Only after all leases were read. Otherwise a row could seem to have no lease because that is on a later
    // page.
    if (run.options.full) {
      await run.reconcileRows();
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
      throw invalidArgument(name, "must be a whole number, 0 or more");
  }
  for (const name of ["pageSize", "concurrency"] as const)
    if (options[name] < 1) throw invalidArgument(name, "must be at least 1");
  // Otherwise a row could be called an orphan while its lease is too old to be seen.
  if (options.windowMs < options.orphanMs) throw invalidArgument("windowMs", "must be at least `orphanMs`");
  return options;
}

class ReconcileRun {
  readonly options: ReconcileOptions;
  readonly result: ReconcileResult;
  readonly #ports: ReconcilePorts;
  readonly #now: () => number;
  /** Leases with findings, which are not checked again in this run. */
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

  async reconcileLeases(): Promise<void> {
    const { local, remote } = this.#ports;
    const { full, windowMs, pageSize, concurrency } = this.options;
    const from = full ? {} : { createdAfterMs: this.#now() - windowMs };
    const tokens = new Set<string>();
    for (let pageToken = ""; ;) {
      const { leases, nextPageToken } = await remote.list({ pageToken, pageSize, ...from });
      // Read after the leases: a row written later than this belongs to a lease that is not stale.
      const saved = new Map((await local.has(leases.map(({ uuid }) => uuid))).map((row) => [row.uuid, row]));
      await inParallel(leases, concurrency, (lease) => this.#reconcileLease(lease, saved.get(lease.uuid)));
      if (nextPageToken === "") return;
      if (tokens.has(nextPageToken))
        throw new Error("the coordinator answered the same page of leases twice");
      tokens.add(nextPageToken);
      pageToken = nextPageToken;
    }
  }

  async reconcileRows(): Promise<void> {
    const { local } = this.#ports;
    const { pageSize, concurrency, orphanMs } = this.options;
    for (let afterUuid = ""; ;) {
      const rows = await local.list({ afterUuid, limit: pageSize });
      const last = rows.at(-1);
      if (last === undefined) return;
      if (last.uuid === afterUuid) throw new Error("the database answered the same page of local rows twice");
      afterUuid = last.uuid;
      const old = rows.filter(({ uuid, ageMs }) => ageMs >= orphanMs && !this.#found.has(uuid));
      await inParallel(old, concurrency, (row) => this.#reconcileRow(row));
    }
  }

  /** An outstanding lease. */
  async #reconcileLease({ uuid, ageMs, idleMs }: RemoteLease, saved: LocalLease | undefined): Promise<void> {
    const { commitGraceMs, staleMs } = this.options;
    this.result.counters.processed += 1;
    if (saved === undefined) {
      if (idleMs >= staleMs) await this.#fenceAndRollBack(uuid);
      else this.result.counters.pending += 1;
      return;
    }
    // A negative age means that the database's clock was set back, so the lease's own age is used.
    if ((saved.ageMs < 0 ? ageMs : saved.ageMs) >= commitGraceMs) await this.#commit(uuid);
  }

  /** Reads the outcome of a lease that is not outstanding any more, but still has an old local row. */
  async #reconcileRow({ uuid }: LocalLease): Promise<void> {
    this.result.counters.processed += 1;
    const answer = await answerOrUnknown(() => this.#ports.remote.get(uuid));
    if (answer.kind === "ok" && answer.value === "COMMITTED") {
      if (await this.#remove(uuid)) this.result.counters.orphaned += 1;
    } else if (answer.kind === "ok" && answer.value === "GRANTED") await this.#commit(uuid);
    else if (answer.kind === "ok") await this.#contradicted(uuid, "ROLLED_BACK");
    else if (isUnknownLease(answer)) await this.#contradicted(uuid, "NOT_FOUND");
    else this.#failed(uuid, "get", describeFailure(answer));
  }

  async #commit(uuid: string): Promise<void> {
    const answer = await answerOrUnknown(() => this.#ports.remote.commit(uuid));
    if (answer.kind === "ok") {
      this.result.counters.committed += 1;
      await this.#remove(uuid);
    } else if (answer.kind === "refused" && answer.reason === "LEASE_ROLLED_BACK")
      await this.#contradicted(uuid, "ROLLED_BACK");
    else if (isUnknownLease(answer)) await this.#contradicted(uuid, "NOT_FOUND");
    else this.#failed(uuid, "commit", describeFailure(answer));
  }

  /** Without the fence, a slow local transaction could still save the lease after the rollback (C5). */
  async #fenceAndRollBack(uuid: string): Promise<void> {
    let fence: Awaited<ReturnType<LocalLeases["fence"]>>;
    try {
      fence = await this.#ports.local.fence(uuid);
    } catch (error) {
      return this.#failed(uuid, "fence", reasonOf(error));
    }
    if (fence === "fenced") await this.#rollBack(uuid);
    // Saved just now, or about to be. Its own process or the next run commits it.
    else this.result.counters.pending += 1;
  }

  async #rollBack(uuid: string): Promise<void> {
    const answer = await answerOrUnknown(() => this.#ports.remote.rollback(uuid));
    if (answer.kind === "ok") this.result.counters.rolledBack += 1;
    // The lease was saved and committed, and its row removed, before the fence was written.
    else if (answer.kind === "refused" && answer.reason === "LEASE_COMMITTED") return;
    else this.#failed(uuid, "rollback", describeFailure(answer));
  }

  async #remove(uuid: string): Promise<boolean> {
    try {
      await this.#ports.local.remove(uuid);
      return true;
    } catch (error) {
      this.#failed(uuid, "remove", reasonOf(error));
      return false;
    }
  }

  /**
   * Reads the row again before it reports a contradiction, because it may have been removed in the meantime.
   */
  async #contradicted(uuid: string, coordinator: "ROLLED_BACK" | "NOT_FOUND"): Promise<void> {
    try {
      const [row] = await this.#ports.local.has([uuid]);
      // A deferred lease is begun again under another UUID (see `DeferredLeases`).
      if (row === undefined || row.isDeferred === true) return;
    } catch (error) {
      return this.#failed(uuid, "check", reasonOf(error));
    }
    this.result.counters.contradicted += 1;
    this.#addFinding({ kind: "contradicted", uuid, coordinator });
    try {
      await this.#ports.local.queueForVerification(uuid);
    } catch (error) {
      // The row stays, so the next run finds the same contradiction.
      this.#failed(uuid, "queue", reasonOf(error));
    }
  }

  #failed(uuid: string, step: Extract<Finding, { kind: "failed" }>["step"], error: string): void {
    this.result.counters.failed += 1;
    this.#addFinding({ kind: "failed", uuid, step, error });
  }

  #addFinding(finding: Finding): void {
    this.#found.add(finding.uuid);
    this.result.findings.push(finding);
    this.#ports.report(finding);
  }
}

/** An exception from a port counts as an unknown outcome. */
async function answerOrUnknown(call: () => Promise<Answer<LeaseState>>): Promise<Answer<LeaseState>> {
  try {
    return await call();
  } catch (error) {
    return unknownFrom(error);
  }
}

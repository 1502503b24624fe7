import type { StatusReport } from "../client/api-types.ts";
import { pause } from "../client/attempt-abort.ts";
import { isLeaseholdError } from "../client/errors.ts";
import type { DeferredCounters } from "./deferred.ts";
import type { ReconcileResult } from "./reconcile.ts";
import { SDK } from "./sdk.ts";
import type { VerificationReport, VerificationStatus } from "./verification/report.ts";

/** Longer than a coordinator wants by default, because the processes of a cell share its limit. */
const EVERY_MS = 10_000;
const DEADLINE_MS = 5_000;
/** Afterwards, what is known goes with the next run's report. */
const MAX_ATTEMPTS = 3;

type Reported = Omit<StatusReport, "sdk">;
type Ages = { started_ago_ms?: number; ended_ago_ms?: number };

/** A part of the status, and when its run was, by `performance.now()`. */
interface Run<Part> {
  part: Omit<Part, keyof Ages>;
  startedMs: number;
  endedMs: number;
}

interface Pending {
  reconciliation?: Run<NonNullable<Reported["reconciliation"]>>;
  verification?: Run<NonNullable<Reported["verification"]>>;
}

/** These did nothing, or another run continues. A report would hide the last result. */
const NOT_REPORTED: ReadonlySet<VerificationStatus> = new Set(["no_slot", "not_due", "slot_lost"] as const);

/**
 * Tells the coordinator what a loop of a cell did. One report is under way at a time, and no run waits for
 * it. A failure only delays what is known: nothing is decided by a status (U1).
 */
export class StatusReporter {
  readonly #send: (report: StatusReport, options: { deadlineMs: number }) => Promise<unknown>;
  #pending: Pending = {};
  #sending: Promise<void> | undefined;
  #nextMs = 0;
  #stop = new AbortController();

  constructor(send: (report: StatusReport, options: { deadlineMs: number }) => Promise<unknown>) {
    this.#send = send;
  }

  reconciled(
    run: {
      full: boolean;
      result: (ReconcileResult & { deferred?: DeferredCounters }) | undefined;
      error: unknown;
    },
    startedMs: number,
  ): void {
    const { full, result, error } = run;
    const stale = result?.findings.filter(
      (finding) => finding.kind === "failed" && (finding.step === "fence" || finding.step === "rollback"),
    );
    const deferred = result?.deferred;
    this.#add({
      reconciliation: {
        part: {
          outcome: error === undefined ? "done" : "aborted",
          is_full: full,
          ...(result === undefined ? {} : { counts: apiCounts(result.counters) }),
          ...(stale === undefined ? {} : { stale_leases: stale.length }),
          ...(deferred === undefined ? {} : { unreleased_deletions: deferred.postponed + deferred.refused }),
        },
        startedMs,
        endedMs: performance.now(),
      },
    });
  }

  verified({ report, error }: { report: VerificationReport | undefined; error: unknown }): void {
    if (report === undefined || (error === undefined && NOT_REPORTED.has(report.status))) return;
    const endedMs = performance.now();
    const { status, applied, counts, approvalReason, durationMs } = report;
    const reason = approvalReason?.slice(0, 256);
    this.#add({
      verification: {
        part: {
          status: error === undefined ? (status as "done") : "failed",
          is_applied: applied,
          counts: apiCounts(counts),
          ...(reason === undefined ? {} : { approval_reason: reason }),
        },
        startedMs: endedMs - durationMs,
        endedMs,
      },
    });
  }

  /** Gives up what waits, and resolves when no report is under way. */
  async stop(): Promise<void> {
    const current = this.#stop;
    this.#stop = new AbortController();
    current.abort();
    await this.#sending;
  }

  #add(pending: Pending): void {
    this.#pending = { ...this.#pending, ...pending };
    this.#sending ??= this.#sendAll(this.#stop.signal).finally(() => (this.#sending = undefined));
  }

  /** Never rejects. */
  async #sendAll(stopped: AbortSignal): Promise<void> {
    for (let attempts = 0; attempts < MAX_ATTEMPTS;) {
      await pause(Math.max(0, this.#nextMs - performance.now()), [stopped]);
      const sent = this.#pending;
      if (stopped.aborted || Object.keys(sent).length === 0) return;
      this.#pending = {};
      this.#nextMs = performance.now() + EVERY_MS;
      try {
        await this.#send(reportOf(sent), { deadlineMs: DEADLINE_MS });
        attempts = 0;
      } catch (error) {
        if (isLeaseholdError(error) && !error.retryable) return;
        const retryAfterMs = (isLeaseholdError(error) ? error.retryAfterMs : undefined) ?? EVERY_MS;
        this.#pending = { ...sent, ...this.#pending };
        // At random, so that the processes of a cell do not come again together.
        this.#nextMs = performance.now() + retryAfterMs * (1 + Math.random());
        attempts += 1;
      }
    }
  }
}

function reportOf({ reconciliation, verification }: Pending): StatusReport {
  return {
    sdk: SDK,
    ...(reconciliation === undefined
      ? {}
      : { reconciliation: { ...reconciliation.part, ...agesOf(reconciliation) } }),
    ...(verification === undefined
      ? {}
      : { verification: { ...verification.part, ...agesOf(verification) } }),
  };
}

/** `performance.now()` only grows, so no clock has to be right. */
const agoMs = (ms: number): number => Math.max(0, Math.round(performance.now() - ms));

const agesOf = ({ startedMs, endedMs }: { startedMs: number; endedMs: number }): Required<Ages> => ({
  started_ago_ms: agoMs(startedMs),
  ended_ago_ms: agoMs(endedMs),
});

/** `rolledBack` → `rolled_back`. */
const apiCounts = (counts: object): Record<string, number> =>
  Object.fromEntries(
    Object.entries(counts as Record<string, number>).map(([name, count]) => [
      name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      count,
    ]),
  );

import { GroupCommit } from "../../kernel/group-commit.ts";
import type { Slot } from "../../kernel/slot.ts";
import type { Standing } from "../../kernel/standing.ts";
import type { Limits } from "../../../common/limits.ts";
import { deleteMeta, readMeta, writeMeta } from "../../kernel/meta.ts";
import type { Ports } from "../../kernel/ports.ts";
import { ok, refused, type Result } from "../../kernel/refusal.ts";
import type { Contradictions } from "./contradictions.ts";
import type { ReportStatus } from "./messages.ts";
import type { ReportedStatus, RunAges, RunTimes, StatusReport, StoredStatus } from "./status.ts";

type StatusPorts = Pick<Ports, "sql" | "clock" | "halt">;

/**
 * What the cell says of itself: one row, which each report replaces. It decides nothing (U1). It has
 * transactions of its own, because it is no part of the ledger's history: a cell that only reports must not
 * use up incarnations (U2).
 */
export class StatusReports {
  readonly #ports: StatusPorts;
  readonly #limits: Limits;
  readonly #contradictions: Contradictions;
  readonly #commits: GroupCommit;

  constructor(ports: StatusPorts, limits: Limits, contradictions: Contradictions, standing: Slot<Standing>) {
    this.#ports = ports;
    this.#limits = limits;
    this.#contradictions = contradictions;
    this.#commits = new GroupCommit(ports, standing);
  }

  /** The last report. Null: there is none. */
  get last(): ReportedStatus | null {
    const stored = this.#stored;
    return stored === undefined ? null : { ...stored, nowMs: this.#ports.clock.now() };
  }

  store(report: ReportStatus): Promise<Result<ReportedStatus>> {
    return this.#commits.submit("report_status", () => {
      const now = this.#ports.clock.now();
      const stored = this.#stored;
      const waitMs = stored === undefined ? 0 : this.#waitMs(stored.reportedAtMs, now);
      if (waitMs > 0)
        return refused("RESOURCE_EXHAUSTED", "the cell has reported its status just before; retry later", {
          reason: "STATUS_TOO_EARLY",
          retryAfterMs: waitMs,
        });
      const next = statusAfter(stored, report, now);
      writeMeta(this.#ports.sql, "status", JSON.stringify(next));
      const contradicted = report.reconciliation?.counts?.["contradicted"] ?? 0;
      if (contradicted > 0) this.#contradictions.add(contradicted);
      return ok({ ...next, nowMs: now });
    });
  }

  /** Must be called in the transaction that ends the cell (X4). */
  forget(): void {
    deleteMeta(this.#ports.sql, "status");
  }

  /** A clock that has gone back since the last report makes nobody wait (M4). */
  #waitMs(lastMs: number, nowMs: number): number {
    return nowMs < lastMs ? 0 : Math.max(0, lastMs + this.#limits.statusEveryMs - nowMs);
  }

  get #stored(): StoredStatus | undefined {
    const value = readMeta(this.#ports.sql, "status");
    return typeof value === "string" ? (JSON.parse(value) as StoredStatus) : undefined;
  }
}

/** Parts that the report leaves out stay as they are (U3). */
const statusAfter = (
  before: StoredStatus | undefined,
  { sdk, reconciliation, verification }: StatusReport,
  nowMs: number,
): StoredStatus => ({
  reportedAtMs: nowMs,
  sdk,
  reconciliation:
    reconciliation === undefined
      ? before?.reconciliation
      : timed(reconciliation, reconciliation.outcome, before?.reconciliation, nowMs),
  verification:
    verification === undefined
      ? before?.verification
      : timed(verification, verification.status, before?.verification, nowMs),
});

/** Turns the ages of a run into times of the ledger's clock. */
function timed<Run extends RunAges>(
  { startedAgoMs, endedAgoMs, ...run }: Run,
  end: string,
  before: RunTimes | undefined,
  nowMs: number,
): Omit<Run, keyof RunAges> & RunTimes {
  const endedAtMs = nowMs - endedAgoMs;
  return {
    ...run,
    startedAtMs: startedAgoMs === undefined ? undefined : nowMs - startedAgoMs,
    endedAtMs,
    lastDoneAtMs: end === "done" ? endedAtMs : before?.lastDoneAtMs,
  };
}

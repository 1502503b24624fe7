import type { BeginAnswer, DecideRequest, PlacedLease } from "../messages.ts";
import type { Conflict, ErrorCode, Refusal, Result } from "../refusal.ts";
import { Counts } from "./counts.ts";
import type { BeginCount, BeginResult, DecisionCount, LedgerMetrics } from "./messages.ts";

/** The codes of calls that the caller repeats, because their outcome is unknown to it. */
const UNKNOWN: ReadonlySet<ErrorCode> = new Set<ErrorCode>(["INTERNAL", "UNAVAILABLE", "DEADLINE_EXCEEDED"]);

/** What an instance of a ledger has done since it started. */
export class LedgerCounters {
  readonly #begins = new Counts(["granted", "conflict taken", "conflict leased"]);
  readonly #decisions = new Counts(["COMMITTED cell", "ROLLED_BACK cell"]);
  readonly #refusedDecisions = new Counts(["LEASE_COMMITTED", "LEASE_ROLLED_BACK"]);
  #fences = 0;

  begun(reply: Result<BeginAnswer>): void {
    this.#begins.add(beginLabel(reply));
  }

  /** Must be called once for each lease, when it is decided for the first time. */
  decided({ outcome, caller }: DecideRequest): void {
    this.#decisions.add(`${outcome} ${caller.role}`);
  }

  fenced(): void {
    this.#fences += 1;
  }

  answeredDecision(reply: Result<PlacedLease>): void {
    if (!reply.ok) this.#refusedDecisions.add(reasonOf(reply.refusal));
  }

  counts(): Pick<LedgerMetrics, "begins" | "decisions" | "fences" | "refusedDecisions"> {
    return {
      begins: this.#begins.entries.map(([label, count]) => {
        const [result, reason = ""] = label.split(" ") as [BeginResult, string?];
        return { result, reason, count } satisfies BeginCount;
      }),
      decisions: this.#decisions.entries.map(([label, count]) => {
        const [outcome, by] = label.split(" ") as [DecisionCount["outcome"], DecisionCount["by"]];
        return { outcome, by, count };
      }),
      fences: this.#fences,
      refusedDecisions: this.#refusedDecisions.entries.map(([reason, count]) => ({ reason, count })),
    };
  }
}

/** The result of a begin and, after a space, why it has no lease. */
function beginLabel(reply: Result<BeginAnswer>): string {
  if (reply.ok) return reply.value.created ? "granted" : "repeated";
  const { refusal } = reply;
  if (refusal.conflicts !== undefined) return `conflict ${mostLasting(refusal.conflicts)}`;
  return `${UNKNOWN.has(refusal.code) ? "failed" : "refused"} ${reasonOf(refusal)}`;
}

const reasonOf = ({ reason, code }: Refusal): string => reason ?? code;

/** The kind that determines the code of the refusal: taken names first, leased ones last. */
function mostLasting(conflicts: readonly Conflict[]): string {
  const kinds = conflicts.map(({ kind }) => kind);
  if (kinds.includes("taken")) return "taken";
  return kinds.find((kind) => kind !== "leased") ?? "leased";
}

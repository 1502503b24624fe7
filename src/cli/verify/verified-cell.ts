import type { CellStatus } from "../../users/client/index.ts";
import { exitCodes, type ExitCode } from "../framework/command-error.ts";
import { driftOf, hasDrift, isSilent, type Drift } from "../../common/status/health.ts";

/** What is known of the verifications of one cell. */
export interface VerifiedCell {
  cell: string;
  /**
   * `ok`: it was verified, and no drift was found. `never_verified`: no verification that was done was
   * reported. The first that applies of the order of `outcomes`.
   */
  outcome: Outcome;
  /** How the last run ended. Null: none was reported. */
  status: string | null;
  /** When the last run that was done has ended, and how long ago. Null: none was reported. */
  verified_at: string | null;
  verified_ago_ms: number | null;
  /** What the last run found. Null: unknown. */
  drift: Drift | null;
  /** Null: the cell has never reported, or its ledger can't be reached. */
  reported_age_ms: number | null;
}

/** From the worst to the best. */
const outcomes = ["drift", "unreachable", "silent", "never_verified", "ok"] as const;

type Outcome = (typeof outcomes)[number];

export function verifiedCell(cell: string, status: CellStatus | null, isReachable: boolean): VerifiedCell {
  const verification = status?.verification;
  const drift = driftOf(status);
  const verifiedAt = verification?.last_done_at ?? null;
  return {
    cell,
    outcome: outcomeOf(status, drift, isReachable),
    status: verification?.status ?? null,
    verified_at: verifiedAt,
    verified_ago_ms: status === null || verifiedAt === null ? null : agoMs(status, verifiedAt),
    drift,
    reported_age_ms: status?.age_ms ?? null,
  };
}

function outcomeOf(status: CellStatus | null, drift: Drift | null, isReachable: boolean): Outcome {
  if (!isReachable) return "unreachable";
  if (hasDrift(drift)) return "drift";
  if (status !== null && isSilent(status.age_ms)) return "silent";
  return status?.verification?.last_done_at === undefined ? "never_verified" : "ok";
}

/** By the ledger's clock, which all times of a status have. */
const agoMs = ({ reported_at: at, age_ms: ageMs }: CellStatus, time: string): number =>
  Math.max(0, Date.parse(at) + ageMs - Date.parse(time));

/** Drift comes first: a script that looks for it must not miss it because another cell is silent. */
export function exitCodeOf(cells: readonly VerifiedCell[]): ExitCode {
  if (cells.some(({ outcome }) => outcome === "drift")) return exitCodes.drift;
  return cells.every(({ outcome }) => outcome === "ok") ? exitCodes.ok : exitCodes.failed;
}

/** What is not in order, and what it means. Undefined: everything is. */
export function sentenceOf({ cell, outcome }: VerifiedCell): string | undefined {
  switch (outcome) {
    case "ok":
    case "drift":
      return undefined;
    case "unreachable":
      return `The ledger of cell ${cell} can't be reached.`;
    case "silent":
      return `Cell ${cell} is silent: it has not reported for 15 minutes.`;
    case "never_verified":
      return `Cell ${cell} has never reported a verification that was done.`;
  }
}

import type { ListPeriods, Period, PeriodPage } from "./messages.ts";
import { periodOfClaim, type PastClaims } from "./shard.ts";
import type { ShardStore } from "../../kernel/shard/store.ts";

/**
 * Reads a page of the periods of a name, the latest first. The claim and the past claims are read in one
 * turn, so no period is missing or listed twice. For one moment, it reads up to `scanRows` past claims.
 */
export function readPeriods(
  store: ShardStore,
  pastClaims: PastClaims,
  scanRows: number,
  { key, before, atMs, limit }: ListPeriods,
): Omit<PeriodPage, "completeSinceMs"> & { rows: number } {
  const claim = before === null ? store.claim(key) : undefined;
  const current = claim === undefined ? [] : [periodOfClaim(claim)];
  const most = atMs === null ? Math.min(limit, scanRows) : scanRows;
  const past = pastClaims.list(key, before ?? Number.MAX_SAFE_INTEGER, most + 1);
  const all = [...current, ...past];
  const read = all.slice(0, most);
  const last = read.at(-1);
  const hasMore = all.length > most && last !== undefined && !(atMs !== null && last.fromMs <= atMs);
  return {
    periods: atMs === null ? read : read.filter((period) => isAt(period, atMs)),
    next: hasMore ? last.epoch : null,
    rows: past.length,
  };
}

const isAt = ({ fromMs, untilMs }: Period, atMs: number): boolean =>
  fromMs <= atMs && (untilMs === null || atMs < untilMs);

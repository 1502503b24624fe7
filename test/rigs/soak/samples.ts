import { readFileSync } from "node:fs";
import type { Call, Kind } from "../crash/record.ts";

/** The measurements of one minute, and what was done to the coordinator in it. */
export interface Minute {
  minute: number;
  /** Latencies in ms of calls that were answered at the first attempt. */
  latencies: Record<Kind, number[]>;
  answered: number;
  refused: number;
  unknown: number;
  replays: number;
  nodeMb: number[];
  workerdMb: number[];
  databaseMb: number[];
  /** The size of the write-ahead logs. Each grows to a few MB and is then reused. */
  walMb: number[];
  kills: number;
  restarts: number;
  clientKills: number;
  complaints: number;
}

export const newMinute = (minute: number): Minute => ({
  minute,
  latencies: { begin: [], commit: [], rollback: [], lookup: [] },
  answered: 0,
  refused: 0,
  unknown: 0,
  replays: 0,
  nodeMb: [],
  workerdMb: [],
  databaseMb: [],
  walMb: [],
  kills: 0,
  restarts: 0,
  clientKills: 0,
  complaints: 0,
});

export function addCall(minute: Minute, { kind, answer, tries, calledAtMs, returnedAtMs }: Call): void {
  minute.replays += Math.max(0, tries - 1);
  if (answer.kind === "unknown") minute.unknown += 1;
  else if (answer.kind === "refused") minute.refused += 1;
  else minute.answered += 1;
  if (answer.kind === "ok" && tries === 1 && returnedAtMs !== undefined)
    minute.latencies[kind].push(returnedAtMs - calledAtMs);
}

/** Resident memory of a process in MB, or undefined if it has ended. */
export function residentMb(pid: number | undefined): number | undefined {
  try {
    const kb = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
    return kb === undefined ? undefined : Number(kb) / 1_024;
  } catch {
    return undefined;
  }
}

export const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

export const percentile = (values: readonly number[], share: number): number => {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
};

export interface Trend {
  name: string;
  unit: string;
  points: number;
  mean: number;
  /** The growth of the regression line from the first point to the last. */
  growth: number;
  /** The growth that still counts as flat. */
  tolerance: number;
  isFlat: boolean;
}

/**
 * Fits a line through the points (least squares). Growth of up to `share` of the mean, or `least`, is
 * allowed. A decrease is always allowed.
 */
export function trendOf(
  name: string,
  unit: string,
  points: readonly [x: number, y: number][],
  share: number,
  least: number,
): Trend {
  const ys = points.map(([, y]) => y);
  const [meanX, meanY] = [mean(points.map(([x]) => x)), mean(ys)];
  const spread = points.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0);
  const slope =
    spread === 0 ? 0 : points.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0) / spread;
  const growth = points.length < 2 ? 0 : slope * ((points.at(-1)?.[0] ?? 0) - (points[0]?.[0] ?? 0));
  const tolerance = Math.max(least, share * meanY);
  return {
    name,
    unit,
    points: points.length,
    mean: meanY,
    growth,
    tolerance,
    isFlat: points.length >= 3 && growth <= tolerance,
  };
}

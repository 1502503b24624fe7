import { v7 as newUuid } from "uuid";
import { isLeaseholdError, type Client } from "../../users/client/index.ts";
import type { Io } from "../framework/io.ts";
import { createOf, type BenchTypes } from "./bench-run.ts";
import { LatencyRecorder, type Latencies } from "./latencies.ts";

export interface LoadOptions {
  run: string;
  types: BenchTypes;
  concurrency: number;
  forMs: number;
  leases: number;
}

export interface Loaded {
  tookMs: number;
  /** Leases that were begun. */
  leases: number;
  latencies: readonly Latencies[];
  /** Leases whose begin or decision has no known outcome. */
  open: readonly string[];
  /** Why the load ended before its time. */
  endedBecause: string | undefined;
}

/** One lease in ten is rolled back. */
const ROLLBACK_EVERY = 10;

/** A deployment that refuses everything is not asked for minutes. */
const MAX_FAILURES = 1_000;

const PROGRESS_MS = 5_000;

const OPS = ["begin", "commit", "rollback", "lookup"] as const;

type Op = (typeof OPS)[number];

/** Begins leases, decides them, and looks their names up, several at a time, until the time is over. */
export async function load(client: Client, io: Io, options: LoadOptions): Promise<Loaded> {
  const { run, types, concurrency, forMs, leases } = options;
  const recorders = new Map(OPS.map((op) => [op, new LatencyRecorder(op)]));
  const open = new Set<string>();
  const startedMs = performance.now();
  let begun = 0;
  let failures = 0;
  let endedBecause: string | undefined;
  const isOver = (): boolean =>
    io.signal.aborted ||
    endedBecause !== undefined ||
    begun >= leases ||
    performance.now() - startedMs >= forMs;
  const timed = async (op: Op, call: () => Promise<unknown>): Promise<boolean> => {
    const callMs = performance.now();
    try {
      await call();
      recorders.get(op)?.answered(performance.now() - callMs);
      return true;
    } catch (error) {
      if (!isLeaseholdError(error)) throw error;
      if (io.signal.aborted) return false;
      recorders.get(op)?.failed(error.code);
      failures += 1;
      if (failures >= MAX_FAILURES) endedBecause = `${MAX_FAILURES} calls failed; the last: ${error.message}`;
      return false;
    }
  };
  const work = async (): Promise<void> => {
    while (!isOver()) {
      begun += 1;
      const number = begun;
      const create = createOf(run, number, types);
      const uuid = newUuid();
      open.add(uuid);
      const isBegun = await timed("begin", () => client.leases.begin({ creates: [create] }, { uuid }));
      if (!isBegun) continue;
      const decision = number % ROLLBACK_EVERY === 0 ? "rollback" : "commit";
      if (await timed(decision, () => client.leases[decision](uuid))) open.delete(uuid);
      await timed("lookup", () => client.records.find(create.bucket));
    }
  };
  const stopProgress = reportProgress(io, () => `${begun} leases, ${failures} failed calls`);
  try {
    await Promise.all(Array.from({ length: concurrency }, work));
  } finally {
    stopProgress();
  }
  const tookMs = performance.now() - startedMs;
  return {
    tookMs,
    leases: begun,
    latencies: [...recorders.values()].map((recorder) => recorder.summary(tookMs)),
    open: [...open],
    endedBecause,
  };
}

function reportProgress({ err }: Io, text: () => string): () => void {
  const timer = setInterval(() => void err.write(`${text()}\n`).catch(() => undefined), PROGRESS_MS);
  timer.unref();
  return () => clearInterval(timer);
}

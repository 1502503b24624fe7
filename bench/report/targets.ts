import type { PeerName } from "../peers.ts";
import type { Result } from "../results.ts";
import { figuresOf, ratioOf } from "./figures.ts";

interface PerformanceTarget {
  what: string;
  target: number;
  /** Undefined when it was not measured. */
  measured: number | undefined;
  /** Set when lower is better; otherwise the measured value must reach at least the target. */
  isAtMost?: true;
}

/** The concurrency of every comparison that is made at only one. */
const CLIENTS = 32;

/** A table of the performance targets for Leasehold, relative to its peers, and what was measured. */
export function targets(results: readonly Result[]): string[] {
  const ratio = (part: Result["part"], what: string, other: PeerName): number | undefined =>
    ratioOf(results, part, what, CLIENTS, "leasehold", other);
  const all: PerformanceTarget[] = [
    { what: "cycles of 1 claim ÷ `d1-only`", target: 1.5, measured: ratio("cycles", "1 claim", "d1-only") },
    { what: "cycles of 4 claims ÷ `d1-only`", target: 1.3, measured: ratio("cycles", "4 claims", "d1-only") },
    { what: "cycles of 1 claim ÷ `postgres`", target: 0.5, measured: ratio("cycles", "1 claim", "postgres") },
    {
      what: "cycles of 4 claims ÷ `postgres`",
      target: 0.5,
      measured: ratio("cycles", "4 claims", "postgres"),
    },
    {
      what: "cycles of 1 claim ÷ the rate that their parts allow",
      target: 0.6,
      measured: shareOfModel(results),
    },
    { what: "lookups ÷ `object`", target: 0.6, measured: ratio("lookups", "hits", "object") },
    { what: "lookups ÷ `postgres`", target: 1.5, measured: ratio("lookups", "hits", "postgres") },
    { what: "begins refused ÷ begins granted", target: 1, measured: refusedByGranted(results) },
    {
      what: "p99 of cycles under load ÷ `answer`",
      target: 2,
      measured: p99RatioOf(results, "cycles under load"),
      isAtMost: true,
    },
    {
      what: "p99 of lookups under load ÷ `answer`",
      target: 2,
      measured: p99RatioOf(results, "lookups under load"),
      isAtMost: true,
    },
  ];
  const rows = all.flatMap(({ what, target, measured, isAtMost }) => {
    if (measured === undefined) return [];
    const isReached = isAtMost ? measured <= target : measured >= target;
    const limit = `${isAtMost ? "≤" : "≥"} ${target}`;
    return [`| ${what} | ${limit} | ${measured.toFixed(2)} | ${isReached ? "yes" : "**no**"} |`];
  });
  if (rows.length === 0) return [];
  const lines = ["## Performance targets", "", `With ${CLIENTS} clients, except under load.`, ""];
  return [
    ...lines,
    "| ratio | target | measured | reached |",
    "| --- | ---: | ---: | --- |",
    ...rows,
    ...modelOf(results),
    "",
  ];
}

/**
 * The parts of one cycle in seconds, derived from the ceilings: its two HTTP answers, one message and one
 * durable transaction.
 */
interface Parts {
  answersS: number;
  messageS: number;
  transactionS: number;
}

/**
 * The numbers of messages and transactions of a cycle on one shard, from docs/reference/limits.md. The first
 * message of each call is the one to the ledger.
 */
const MESSAGES = 4;
const TRANSACTIONS = 4;

function partsOf(results: readonly Result[]): Parts | undefined {
  const [answer, object, write] = (["answer", "object", "write"] as const).map((ceiling) =>
    figuresOf(results, "cycles", "1 claim", CLIENTS, ceiling),
  );
  if (answer === undefined || object === undefined || write === undefined) return undefined;
  // A cycle against a ceiling is two requests. `object` adds one call to each, and `write` one durable write.
  const [answersS, withCallsS, withWritesS] = [
    1 / answer.perSecond,
    1 / object.perSecond,
    1 / write.perSecond,
  ];
  // A negative difference is noise, so no model can be computed from it.
  if (withCallsS <= answersS || withWritesS <= withCallsS) return undefined;
  return { answersS, messageS: (withCallsS - answersS) / 2, transactionS: (withWritesS - withCallsS) / 2 };
}

const cyclesOf = ({ answersS, messageS, transactionS }: Parts): number =>
  1 / (answersS + MESSAGES * messageS + TRANSACTIONS * transactionS);

function shareOfModel(results: readonly Result[]): number | undefined {
  const parts = partsOf(results);
  const measured = figuresOf(results, "cycles", "1 claim", CLIENTS, "leasehold");
  return parts === undefined || measured === undefined ? undefined : measured.perSecond / cyclesOf(parts);
}

function modelOf(results: readonly Result[]): string[] {
  const parts = partsOf(results);
  if (parts === undefined) return [];
  const ms = (seconds: number): string => `${(seconds * 1_000).toFixed(2)} ms`;
  const messages = `${MESSAGES} × ${ms(parts.messageS)}`;
  const transactions = `${TRANSACTIONS} × ${ms(parts.transactionS)}`;
  return [
    "",
    "The sum of the parts of a cycle (two answers, its messages and its durable transactions) is",
    `${ms(parts.answersS)} + ${messages} + ${transactions},`,
    `which allows ${cyclesOf(parts).toFixed(0)} cycles a second.`,
  ];
}

function refusedByGranted(results: readonly Result[]): number | undefined {
  const [refused, granted] = ["begins refused", "begins granted"].map((what) =>
    figuresOf(results, "refusals", what, CLIENTS, "leasehold"),
  );
  return refused === undefined || granted === undefined ? undefined : refused.perSecond / granted.perSecond;
}

function p99RatioOf(results: readonly Result[], what: string): number | undefined {
  const [ours, nothing] = (["leasehold", "answer"] as const).map((peer) =>
    figuresOf(results, "load", what, 0, peer),
  );
  return ours === undefined || nothing === undefined ? undefined : ours.p99Ms / nothing.p99Ms;
}

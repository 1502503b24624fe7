import type { PeerName } from "../peers.ts";
import type { Result } from "../results.ts";
import { figuresOf, ratioOf } from "./figures.ts";

interface PerformanceTarget {
  what: string;
  target: number;
  /** Undefined: not measured. */
  measured: number | undefined;
  /** How to read it. */
  isAtMost?: true;
}

/** All that is compared at one concurrency. */
const CLIENTS = 32;

/** What is wanted of Leasehold beside the others, and what was measured. */
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
    { what: "cycles of 1 claim ÷ the sum of their parts", target: 0.6, measured: shareOfModel(results) },
    { what: "lookups ÷ `object`", target: 0.6, measured: ratio("lookups", "hits", "object") },
    { what: "lookups ÷ `postgres`", target: 1.5, measured: ratio("lookups", "hits", "postgres") },
    { what: "begins refused ÷ begins granted", target: 1, measured: refusedByGranted(results) },
    {
      what: "p99 of cycles under the load ÷ `answer`",
      target: 2,
      measured: p99RatioOf(results, "cycles under load"),
      isAtMost: true,
    },
    {
      what: "p99 of lookups under the load ÷ `answer`",
      target: 2,
      measured: p99RatioOf(results, "lookups under load"),
      isAtMost: true,
    },
  ];
  const rows = all.flatMap(({ what, target, measured, isAtMost }) => {
    if (measured === undefined) return [];
    const isReached = isAtMost ? measured <= target : measured >= target;
    return [
      `| ${what} | ${isAtMost ? "≤" : "≥"} ${target} | ${measured.toFixed(2)} | ${isReached ? "yes" : "**no**"} |`,
    ];
  });
  if (rows.length === 0) return [];
  const lines = ["## What is wanted", "", `At ${CLIENTS} clients where nothing else is said.`, ""];
  return [
    ...lines,
    "| ratio | wanted | measured | reached |",
    "| --- | ---: | ---: | --- |",
    ...rows,
    ...modelOf(results),
    "",
  ];
}

/**
 * Seconds of one cycle's parts, measured on the ceilings: its two answers over HTTP, a message and a durable
 * transaction.
 */
interface Parts {
  answersS: number;
  messageS: number;
  transactionS: number;
}

/** Of a cycle on one shard: docs/reference/limits.md. The first message of each call is to the ledger. */
const MESSAGES = 4;
const TRANSACTIONS = 4;

function partsOf(results: readonly Result[]): Parts | undefined {
  const [answer, object, write] = (["answer", "object", "write"] as const).map((ceiling) =>
    figuresOf(results, "cycles", "1 claim", CLIENTS, ceiling),
  );
  if (answer === undefined || object === undefined || write === undefined) return undefined;
  // A cycle of a ceiling is two requests, each with one call, and with one write.
  const [answersS, withCallsS, withWritesS] = [
    1 / answer.perSecond,
    1 / object.perSecond,
    1 / write.perSecond,
  ];
  // Less than nothing is noise, and no part of a sum.
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
  const sum = `${ms(parts.answersS)} + ${MESSAGES} × ${ms(parts.messageS)} + ${TRANSACTIONS} × ${ms(parts.transactionS)}`;
  return [
    "",
    `The sum of the parts of a cycle, two answers, messages and durable transactions, is ${sum}: ${cyclesOf(parts).toFixed(0)} a second.`,
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

import { ratiosOfClaims } from "../growth/table.ts";
import type { Result as GrowthResult } from "../growth/results.ts";
import { MANY_CLAIMS, variantOf } from "../growth/variants.ts";
import { claimsText } from "../measure/parts.ts";
import type { PeerName } from "../peers.ts";
import type { Result } from "../results.ts";
import { figuresOf, median, ratiosOf, type Measurement } from "./figures.ts";

/** What a report is made of. */
export interface Measured {
  /** Of all peers, from one run. */
  results: readonly Result[];
  /** Of Leasehold alone as it grows, measured with the same code. */
  growth: readonly GrowthResult[];
}

interface PerformanceTarget {
  what: string;
  target: number;
  /** The ratio in each round. Empty when it was not measured. */
  ratios: readonly number[];
  /** Set when lower is better; otherwise the ratio must reach at least the target. */
  isAtMost?: true;
}

/** The concurrency of every comparison that is made at only one. */
const CLIENTS = 32;

const cyclesOf = (claims: number, clients = CLIENTS): Measurement => ({
  part: "cycles",
  what: claimsText(claims),
  clients,
});
const HITS: Measurement = { part: "lookups", what: "hits", clients: CLIENTS };

/** A table of the performance targets for Leasehold, relative to its peers, and what was measured. */
export function targets({ results, growth }: Measured): string[] {
  const all = [...peerTargets(results), ...growthTargets(growth), ...ownTargets(results)];
  if (all.every(({ ratios }) => ratios.length === 0)) return [];
  const lines = [
    "## Performance targets",
    "",
    `With ${CLIENTS} clients, unless a row says otherwise. A measured value is the median of its rounds.`,
    "",
    "| ratio | target | measured | reached | rounds |",
    "| --- | ---: | ---: | --- | ---: |",
    ...all.map(rowOf),
  ];
  return [...lines, ...partsText(results), ""];
}

function rowOf({ what, target, ratios, isAtMost }: PerformanceTarget): string {
  const limit = `${isAtMost ? "≤" : "≥"} ${target}`;
  if (ratios.length === 0) return `| ${what} | ${limit} | | not measured | |`;
  const measured = median(ratios);
  const isReached = isAtMost ? measured <= target : measured >= target;
  const rounds = ratios.map((ratio) => ratio.toFixed(2)).join(", ");
  return `| ${what} | ${limit} | ${measured.toFixed(2)} | ${isReached ? "yes" : "**no**"} | ${rounds} |`;
}

function peerTargets(results: readonly Result[]): PerformanceTarget[] {
  const cycles = (peer: PeerName, other: PeerName, limits: Record<number, number>): PerformanceTarget[] =>
    Object.entries(limits).map(([claims, target]) => ({
      what: `\`${peer}\` ÷ \`${other}\`, cycles of ${claimsText(Number(claims))}`,
      target,
      ratios: ratiosOf(results, cyclesOf(Number(claims)), peer, other),
    }));
  const lookups = (peer: PeerName, other: PeerName, target: number): PerformanceTarget => ({
    what: `\`${peer}\` ÷ \`${other}\`, lookups`,
    target,
    ratios: ratiosOf(results, HITS, peer, other),
  });
  return [
    ...cycles("leasehold", "d1-only", { 1: 1.5, 4: 1.5, 16: 1.3 }),
    lookups("leasehold", "d1-only", 2),
    {
      what: "`leasehold` ÷ `d1-only`, p50 of a cycle of 1 claim, 1 client",
      target: 0.8,
      ratios: ratiosOf(results, cyclesOf(1, 1), "leasehold", "d1-only", ({ p50Ms }) => p50Ms),
      isAtMost: true,
    },
    ...cycles("leasehold", "write", { 1: 0.9 }),
    lookups("leasehold", "object", 0.6),
    ...cycles("standalone", "postgres-transactions", { 1: 1.2, 4: 1.2, 16: 1 }),
    lookups("standalone", "postgres-transactions", 0.9),
    ...cycles("standalone", "postgres", { 1: 0.9, 4: 0.8, 16: 0.6 }),
    ...cycles("leasehold", "postgres", { 1: 0.5, 4: 0.5 }),
    lookups("leasehold", "postgres", 1.5),
  ];
}

/** The cost of one cycle or lookup with millions of claims, relative to its cost with few. */
function growthTargets(growth: readonly GrowthResult[]): PerformanceTarget[] {
  const figures = {
    time: ({ seconds, turns }: GrowthResult) => seconds / turns,
    "CPU time": ({ cpuMs, turns }: GrowthResult) => cpuMs / turns,
  };
  const [many, few] = [MANY_CLAIMS, variantOf({}).claims].map((claims) => claims.toLocaleString("en"));
  return (["cycles", "lookups"] as const).flatMap((work) =>
    Object.entries(figures).map(([name, figure]): PerformanceTarget => ({
      what: `\`leasehold\`, ${name} of ${work} with ${many} claims ÷ with ${few}`,
      target: 1.2,
      ratios: ratiosOfClaims(growth, work, figure),
      isAtMost: true,
    })),
  );
}

/** Targets that compare figures of different measurements, so they have one ratio for all rounds. */
function ownTargets(results: readonly Result[]): PerformanceTarget[] {
  const p99 = (what: string): PerformanceTarget => ({
    what: `p99 of ${what} ÷ \`answer\``,
    target: 2,
    ratios: ratiosOf(
      results,
      { part: "load", what, clients: 0 },
      "leasehold",
      "answer",
      ({ p99Ms }) => p99Ms,
    ),
    isAtMost: true,
  });
  return [
    {
      what: "`leasehold`, cycles of 1 claim ÷ the rate that their parts allow",
      target: 0.6,
      ratios: defined(shareOfParts(results)),
    },
    { what: "`leasehold`, begins refused ÷ granted", target: 1, ratios: defined(refusedByGranted(results)) },
    p99("cycles under load"),
    p99("lookups under load"),
  ];
}

const defined = (ratio: number | undefined): number[] => (ratio === undefined ? [] : [ratio]);

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
    figuresOf(results, cyclesOf(1), ceiling),
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

const rateOfParts = ({ answersS, messageS, transactionS }: Parts): number =>
  1 / (answersS + MESSAGES * messageS + TRANSACTIONS * transactionS);

function shareOfParts(results: readonly Result[]): number | undefined {
  const parts = partsOf(results);
  const measured = figuresOf(results, cyclesOf(1), "leasehold");
  return parts === undefined || measured === undefined ? undefined : measured.perSecond / rateOfParts(parts);
}

function partsText(results: readonly Result[]): string[] {
  const parts = partsOf(results);
  if (parts === undefined) return [];
  const ms = (seconds: number): string => `${(seconds * 1_000).toFixed(2)} ms`;
  const messages = `${MESSAGES} × ${ms(parts.messageS)}`;
  const transactions = `${TRANSACTIONS} × ${ms(parts.transactionS)}`;
  return [
    "",
    "The sum of the parts of a cycle (two answers, its messages and its durable transactions) is",
    `${ms(parts.answersS)} + ${messages} + ${transactions},`,
    `which allows ${rateOfParts(parts).toFixed(0)} cycles a second.`,
  ];
}

function refusedByGranted(results: readonly Result[]): number | undefined {
  const [refused, granted] = ["begins refused", "begins granted"].map((what) =>
    figuresOf(results, { part: "refusals", what, clients: CLIENTS }, "leasehold"),
  );
  return refused === undefined || granted === undefined ? undefined : refused.perSecond / granted.perSecond;
}

import type { WorkCounts } from "../counts/work-counts.ts";
import { RIDING_CYCLE } from "../counts/cycles.ts";
import { awakeUsd, dynamoDbCycleUsd, dynamoDbLookupUsd, usdOfWork } from "./cost.ts";
import {
  CELLS,
  CLAIMS_OF_ONE,
  CLAIMS_PER_SECOND,
  CYCLES_PER_SECOND,
  HELD_MS,
  LOOKUPS_PER_SECOND,
} from "./gitlab.ts";
import { logs, READ_ON, spanner } from "./prices.ts";

/** The number of shards that `wrangler.toml` deploys. */
const SHARDS = 4;
const CLAIMS = [1, 4, 16];

const MONTH_S = 30 * 86_400;
/** The ledgers of the cells and the directory. Neither they nor shards hibernate under that load. */
const OTHER_OBJECTS = CELLS + 1;

interface Row {
  name: string;
  cycleUsd: (claims: number) => number;
  lookupUsd: number;
  monthlyUsd: number;
}

/** @param touched - picks a line by the shards that it touches, where lines differ only in them */
function countedRow(
  name: string,
  counted: readonly WorkCounts[],
  touched: (...shards: number[]) => number,
  monthlyUsd: number,
  cycle = "cycle",
): Row {
  const usd = (work: string, claims: number): number => {
    const lines = counted.filter((each) => each.work === work && each.claims === claims);
    const shardsTouched = touched(...lines.map((line) => line.shardsTouched));
    return Math.max(...lines.filter((line) => line.shardsTouched === shardsTouched).map(usdOfWork));
  };
  return { name, monthlyUsd, lookupUsd: usd("lookup, there", 1), cycleUsd: (claims) => usd(cycle, claims) };
}

const on = (count: number, counted: readonly WorkCounts[]): WorkCounts[] =>
  counted.filter(({ system, shards }) => system === "leasehold" && shards === count);
const fixedUsd = (shards: number): number => (OTHER_OBJECTS + shards) * awakeUsd(MONTH_S);

/** They were counted at GitLab.com's rate, for batches of its size. */
const ridingRows = (counted: readonly WorkCounts[]): Row[] =>
  [1, SHARDS].map((shards) => {
    const name = `leasehold, ${shards} shard${shards === 1 ? "" : "s, random names"}, decisions ride`;
    return countedRow(name, on(shards, counted), Math.max, fixedUsd(shards), RIDING_CYCLE);
  });

function rowsOf(counted: readonly WorkCounts[]): Row[] {
  const d1Only = counted.filter(({ system }) => system === "d1-only");
  return [
    countedRow("leasehold, 1 shard", on(1, counted), Math.max, fixedUsd(1)),
    countedRow(`leasehold, ${SHARDS} shards, random names`, on(SHARDS, counted), Math.min, fixedUsd(SHARDS)),
    countedRow(`leasehold, ${SHARDS} shards, at most`, on(SHARDS, counted), Math.max, fixedUsd(SHARDS)),
    countedRow("d1-only", d1Only, Math.max, 0),
    { name: "DynamoDB", cycleUsd: dynamoDbCycleUsd, lookupUsd: dynamoDbLookupUsd(), monthlyUsd: 0 },
  ];
}

/** Markdown with the cost of a million operations and of a month of GitLab.com. */
export function costTable(counted: readonly WorkCounts[]): string[] {
  const perMillion = (usd: number): string => (usd * 1e6).toFixed(2);
  const rows = rowsOf(counted);
  const lines = [
    "## Costs",
    "",
    `USD at list prices of ${READ_ON}, without the usage that a plan includes;`,
    "`bench/cost/prices.ts` names the sources. A cycle is a begin, its commit, and all that follows until",
    "the lease is forgotten. Each call is alone, so these are upper bounds: under load, leases share",
    "messages. `At most` is the cost of names on as many shards as possible.",
    "",
    `| per million | ${CLAIMS.map((claims) => `cycles of ${claims}`).join(" | ")} | lookups |`,
    `| --- | ${CLAIMS.map(() => "---:").join(" | ")} | ---: |`,
    ...rows.map(({ name, cycleUsd, lookupUsd }) => {
      const cycles = CLAIMS.map((claims) => perMillion(cycleUsd(claims))).join(" | ");
      return `| ${name} | ${cycles} | ${perMillion(lookupUsd)} |`;
    }),
    "",
    `A month of GitLab.com, with ${CLAIMS_PER_SECOND} claims a second in batches of ${CLAIMS_OF_ONE} and ` +
      `${LOOKUPS_PER_SECOND} lookups a second`,
    "that miss every cache. Where decisions ride, they share messages with the next begins of their cell,",
    `which begins ${CYCLES_PER_SECOND.toFixed(1)} leases a second at random moments and commits each after ` +
      `${HELD_MS} ms:`,
    "",
    "| per month | claims | lookups | fixed | total |",
    "| --- | ---: | ---: | ---: | ---: |",
  ];
  for (const { name, cycleUsd, lookupUsd, monthlyUsd } of rows.toSpliced(3, 0, ...ridingRows(counted))) {
    const cycles = (cycleUsd(CLAIMS_OF_ONE) * MONTH_S * CLAIMS_PER_SECOND) / CLAIMS_OF_ONE;
    const lookups = lookupUsd * MONTH_S * LOOKUPS_PER_SECOND;
    lines.push(
      `| ${name} | ${[cycles, lookups, monthlyUsd, cycles + lookups + monthlyUsd].map(whole).join(" | ")} |`,
    );
  }
  lines.push(logRow("request log, 1 in 100", 0.01), logRow("request log of all", 1));
  const spannerUsd = spanner.monthUsd.map(whole).join(" to ");
  return [...lines, `| Spanner, 5 nodes | | | ${spannerUsd} | ${spannerUsd} |`, ""];
}

/** The lines of the request log: one for each call, so two for each cycle. */
function logRow(name: string, share: number): string {
  const cycles = 2 * ((MONTH_S * CLAIMS_PER_SECOND) / CLAIMS_OF_ONE) * share * logs.eventUsd;
  const lookups = MONTH_S * LOOKUPS_PER_SECOND * share * logs.eventUsd;
  return `| ${name} | ${[cycles, lookups, 0, cycles + lookups].map(whole).join(" | ")} |`;
}

const whole = (usd: number): string => Math.round(usd).toLocaleString("en");

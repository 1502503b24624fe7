import type { WorkCounts } from "../counts/work-counts.ts";
import {
  awakeUsd,
  cycleUse,
  dynamoDbCycleUsd,
  dynamoDbLookupUsd,
  lookupUse,
  usdOf,
  type System,
} from "./cost.ts";
import { logs, READ_ON, spanner } from "./prices.ts";

/** The number of shards that `wrangler.toml` deploys. */
const SHARDS = 4;
const CLAIMS = [1, 4, 16];

/**
 * The load of GitLab.com: 50 claims a second on average (300 at the peak), here in batches of four, and 500
 * lookups a second that miss every cache.
 */
const MONTH_S = 30 * 86_400;
const CLAIMS_PER_SECOND = 50;
const CLAIMS_OF_ONE = 4;
const LOOKUPS_PER_SECOND = 500;
/** The ledgers of four cells, the shards and the directory. None of them hibernates under that load. */
const OBJECTS = 4 + SHARDS + 1;

interface Row {
  name: string;
  /** USD per cycle; undefined when it was not counted. */
  cycleUsd: (claims: number) => number | undefined;
  lookupUsd: number | undefined;
  monthlyUsd: number;
}

function rowsOf(counted: readonly WorkCounts[]): Row[] {
  const ours = (name: string, system: System, monthlyUsd: number): Row => {
    const lookup = lookupUse(counted, system, SHARDS);
    return {
      name,
      monthlyUsd,
      lookupUsd: lookup === undefined ? undefined : usdOf(lookup),
      cycleUsd: (claims) => {
        const use = cycleUse(counted, system, SHARDS, claims);
        return use === undefined ? undefined : usdOf(use);
      },
    };
  };
  return [
    ours("leasehold", "leasehold", OBJECTS * awakeUsd(MONTH_S)),
    ours("d1-only", "d1-only", 0),
    { name: "DynamoDB", cycleUsd: dynamoDbCycleUsd, lookupUsd: dynamoDbLookupUsd(), monthlyUsd: 0 },
  ];
}

/**
 * Markdown with the cost of a million operations and of a month of GitLab.com. Empty when nothing was
 * counted.
 */
export function costTable(counted: readonly WorkCounts[]): string[] {
  if (counted.length === 0) return [];
  const perMillion = (usd: number | undefined): string => (usd === undefined ? "" : (usd * 1e6).toFixed(2));
  const rows = rowsOf(counted);
  const lines = [
    "## Costs",
    "",
    `USD at list prices of ${READ_ON}, without the usage that a plan includes;`,
    "`bench/cost/prices.ts` names the sources. Each call is alone, so these are upper bounds: under load,",
    "leases share messages.",
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
    "that miss every cache:",
    "",
    "| per month | claims | lookups | fixed | total |",
    "| --- | ---: | ---: | ---: | ---: |",
  ];
  for (const { name, cycleUsd, lookupUsd, monthlyUsd } of rows) {
    const cycles = ((cycleUsd(CLAIMS_OF_ONE) ?? Number.NaN) * MONTH_S * CLAIMS_PER_SECOND) / CLAIMS_OF_ONE;
    const lookups = (lookupUsd ?? Number.NaN) * MONTH_S * LOOKUPS_PER_SECOND;
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

const whole = (usd: number): string => (Number.isNaN(usd) ? "" : Math.round(usd).toLocaleString("en"));

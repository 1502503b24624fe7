/**
 * List prices in USD, without what a plan includes: what one more of each costs. Read on 2026-11-21 from the
 * pages named; prices change, and the tables are made anew with `npm run bench -- --report` (and `--full`,
 * where the report is of a full run).
 */
export const READ_ON = "2026-11-21";

const PER_MILLION = 1e-6;

/** developers.cloudflare.com/workers/platform/pricing: Workers Paid. */
export const worker = { requestUsd: 0.3 * PER_MILLION, cpuMsUsd: 0.02 * PER_MILLION };

/**
 * developers.cloudflare.com/durable-objects/platform/pricing: each call of an object is a request; an object
 * that is awake counts as 128 MB.
 */
export const durableObject = {
  requestUsd: 0.15 * PER_MILLION,
  gigabyteSecondUsd: 12.5 * PER_MILLION,
  gigabytes: 0.128,
};

/**
 * The same page, and developers.cloudflare.com/d1/platform/pricing: rows of objects and of D1 cost the same.
 */
export const rows = { readUsd: 0.001 * PER_MILLION, writtenUsd: 1 * PER_MILLION };

/**
 * aws.amazon.com/dynamodb/pricing/on-demand, us-east-1, items up to 1 KB: a write in a transaction is two
 * units.
 */
export const dynamoDb = {
  writeUnitUsd: 0.625 * PER_MILLION,
  readUnitUsd: 0.125 * PER_MILLION,
  unitsOfTransactionalWrite: 2,
};

/**
 * What GitLab's documents of the Topology Service state for the Spanner behind it: 5 nodes, 12 to 13 thousand
 * a month.
 */
export const spanner = { monthUsd: [12_000, 13_000] as const };

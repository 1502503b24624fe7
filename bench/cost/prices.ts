/**
 * List prices in USD: what one more unit costs beyond the usage that a plan includes. They were read on
 * 2026-11-21 from the pages named below, whose dates are those of their last change. After a change of
 * prices, `npm run counts -- --write` writes the tables again.
 */
export const READ_ON = "2026-11-21";

const PER_MILLION = 1e-6;

/** Source: developers.cloudflare.com/workers/platform/pricing (2026-07-07), Workers Paid. */
export const worker = { requestUsd: 0.3 * PER_MILLION, cpuMsUsd: 0.02 * PER_MILLION };

/**
 * Source: developers.cloudflare.com/durable-objects/platform/pricing (2026-09-30). Each call to an object is
 * a request, and so is each alarm. An object that is awake is billed for 128 MB of memory.
 */
export const durableObject = {
  requestUsd: 0.15 * PER_MILLION,
  gigabyteSecondUsd: 12.5 * PER_MILLION,
  gigabytes: 0.128,
};

/**
 * Source: the same page and developers.cloudflare.com/d1/platform/pricing. Rows of objects and of D1 cost the
 * same.
 */
export const rows = { readUsd: 0.001 * PER_MILLION, writtenUsd: 1 * PER_MILLION };

/**
 * Source: developers.cloudflare.com/workers/observability/logs/workers-logs (2026-10-02), section Pricing: 20
 * million events a month are included. Each line of the log is an event, and so is each invocation log.
 */
export const logs = { eventUsd: 0.6 * PER_MILLION };

/**
 * Source: aws.amazon.com/dynamodb/pricing/on-demand, us-east-1, items up to 1 KB. A write in a transaction
 * takes two units.
 */
export const dynamoDb = {
  writeUnitUsd: 0.625 * PER_MILLION,
  readUnitUsd: 0.125 * PER_MILLION,
  unitsOfTransactionalWrite: 2,
};

/**
 * Source: GitLab's documentation of the Topology Service, for the Spanner behind it: 5 nodes, 12,000 to
 * 13,000 USD a month.
 */
export const spanner = { monthUsd: [12_000, 13_000] as const };

import type { Bucket } from "./api-types.ts";
import { StaleEpochError } from "./errors.ts";

/**
 * The epoch of a claim of this cell, from `records.fencingToken`. Each later owner of the name has a larger
 * one (E1), and so has each later version of the claim.
 */
export interface FencingToken {
  readonly bucket: Bucket;
  readonly epoch: number;
}

/**
 * Carries out a write that depends on owning a name, to something that several cells can write. The resource
 * keeps the largest epoch that has written to it, and the write is a conditional update: a writer that is
 * late finds a larger epoch there, and changes nothing.
 *
 * @param token from `records.fencingToken`, read before the work began
 * @param write the conditional update; returns the number of rows that it has changed
 * @throws StaleEpochError if it has changed none
 *
 * @example
 * ```ts
 * import { fencedWrite } from "leasehold/client";
 *
 * declare const shared: import("pg").Pool; // a database that several cells write
 * declare function render(name: string): Promise<string>; // takes minutes
 *
 * const token = await client.records.fencingToken({ type: "ROUTES", value: "acme" });
 * const site = await render("acme");
 * await fencedWrite(token, async (epoch) => {
 *   const { rowCount } = await shared.query(
 *     "UPDATE sites SET body = $1, epoch = $2 WHERE name = 'acme' AND epoch <= $2",
 *     [site, epoch],
 *   );
 *   return rowCount ?? 0;
 * });
 * ```
 */
export async function fencedWrite(
  { bucket, epoch }: FencingToken,
  write: (epoch: number) => Promise<number>,
): Promise<number> {
  const rows = await write(epoch);
  if (!Number.isSafeInteger(rows) || rows < 0)
    throw new TypeError(`\`write\` must return the number of changed rows; it returned ${String(rows)}`);
  if (rows === 0)
    throw new StaleEpochError(
      `the write for the name ${JSON.stringify(bucket.value)} with the epoch ${epoch} changed no row: a ` +
        "later owner or version of the claim has written, or the row does not exist",
      { code: "FAILED_PRECONDITION" },
    );
  return rows;
}

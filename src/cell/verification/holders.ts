import type { Record as ClaimRecord } from "../../client/api-types.ts";
import { differenceOf, isLeased } from "./compare.ts";
import type { Different, LeftBecause, Missing } from "./drift.ts";
import { isSame } from "./named.ts";
import type { VerificationPorts, VerifiedTable } from "./ports.ts";

export type Holder = ClaimRecord | "other" | undefined;

/** Who has the names that these rows lack. */
export async function* withHolders(
  { records, limits }: Pick<VerificationPorts, "records" | "limits">,
  missing: readonly Missing[],
): AsyncGenerator<[Missing, Holder]> {
  for (let at = 0; at < missing.length; at += limits.lookupBuckets) {
    const asked = missing.slice(at, at + limits.lookupBuckets);
    const found = await records.lookup(asked.map(({ want }) => want.bucket));
    for (const [index, drift] of asked.entries()) yield [drift, found[index]];
  }
}

/** What is to be done about a name that somebody has. Only a row that can be looked at can be found not to need it any more. */
export function judge(
  drift: Missing,
  holder: Holder,
  tables: readonly VerifiedTable[],
): Different | LeftBecause {
  if (holder === "other") return "other_cell";
  if (holder === undefined || isSame(drift.want, holder)) return "changed";
  if (isLeased(holder)) return "leased";
  const its = tables.find(({ source }) => source === holder.source.type);
  // Of a table that is seen whole, it is known as well that it does not claim such names at all any more.
  const isVerified = its !== undefined && (its.isWhole || its.bucketTypes.includes(holder.bucket.type));
  return isVerified ? differenceOf(drift.want, holder) : "not_verified";
}

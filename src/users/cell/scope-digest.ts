import { DigestSum, digestWordsOf } from "../../common/digest.ts";
import type { Types } from "../../common/types/types.ts";
import type { Claimable } from "./claimable.ts";
import type { CellDatabase } from "./local.ts";
import { digestedOf, namesOf } from "./verification/row-names.ts";

/** The rows that are in memory at a time. */
const PAGE_ROWS = 1_000;

/** The names that a cell's rows have in a scope: how many, and the digest of the set. */
export interface ScopeDigest {
  count: number;
  /** 32 hexadecimal digits, computed as the coordinator computes that of the claims. */
  hash: string;
}

/**
 * Reads all rows in one snapshot, page by page, and digests the names of those that have the scope. A value
 * that is not a name has no claim, so it is left out.
 */
export function digestScope<Tx>(
  database: CellDatabase<Tx>,
  tables: readonly Claimable[],
  types: Types,
  scope: string,
): Promise<ScopeDigest> {
  return database.verification.inSnapshot(async (page) => {
    const sum = new DigestSum();
    for (const claimable of tables)
      for (let after = ""; ;) {
        const rows = await page(claimable, { after, upTo: undefined, limit: PAGE_ROWS });
        for (const { row } of rows) {
          const { names } = namesOf(types, claimable.claimsOf(row));
          for (const name of names) if (name.scope === scope) sum.add(digestWordsOf(digestedOf(types, name)));
        }
        const last = rows.at(-1);
        if (last === undefined || rows.length < PAGE_ROWS) break;
        after = claimable.idOf(last.row);
      }
    return { count: sum.count, hash: sum.hash };
  });
}

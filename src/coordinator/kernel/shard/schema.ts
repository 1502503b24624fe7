import { INCARNATION_TABLE } from "../instances.ts";
import type { Steps } from "../tables.ts";
import { claimTable } from "./rows.ts";
import { RANGE_HOLD_TABLE } from "../../capabilities/transfer/range-holds.ts";
import { LOG_TABLE } from "./shard-log.ts";

export const shardSchema: Steps = [
  [
    claimTable.create,
    // The columns up to `canonical` are the order of the listings. The other columns are in the index so that
    // digests of ranges read nothing but the index.
    `CREATE INDEX claim_by_source ON claim (cell, source_type, source_order, bucket_type, canonical,
                                            updated_at_ms, digest_0, digest_1, digest_2, digest_3)`,
    // The claims of one scope of a cell. It has no entry for a claim without a scope.
    `CREATE INDEX claim_by_scope ON claim (cell, scope, bucket_type, canonical) WHERE scope IS NOT NULL`,
    RANGE_HOLD_TABLE,
    INCARNATION_TABLE,
    LOG_TABLE,
  ],
];

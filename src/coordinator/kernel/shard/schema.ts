import { INCARNATION_TABLE } from "../instances.ts";
import type { Steps } from "../tables.ts";
import { claimTable } from "./rows.ts";
import { LOG_TABLE } from "./shard-log.ts";

export const shardSchema: Steps = [
  [
    claimTable.create,
    // The columns up to `canonical` are the order of the listings. The other columns are in the index so that
    // digests of ranges read nothing but the index.
    `CREATE INDEX claim_by_source ON claim (cell, source_type, source_order, bucket_type, canonical,
                                            updated_at_ms, digest_0, digest_1, digest_2, digest_3)`,
    INCARNATION_TABLE,
    LOG_TABLE,
  ],
];

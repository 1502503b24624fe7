import { fillClaims } from "./fill-claims.ts";
import { CELL, LeaseFiller } from "./fill-leases.ts";
import { openObjects, type FileSql } from "./objects.ts";
import { setUp, type Keys } from "./set-up.ts";
import { cellIds, type Variant } from "./variants.ts";

/**
 * Creates a state with the contents of the variant, on which a coordinator can be started. It writes the rows
 * directly into the objects' files, because millions of begins would take hours. The objects themselves would
 * have written the same rows.
 */
export async function fill(stateFolder: string, variant: Variant): Promise<Keys> {
  const keys = await setUp(stateFolder, variant);
  const shardNames = Array.from({ length: variant.shards }, (_, shard) => `shard-${shard}`);
  const ledgerNames = cellIds(variant.cells).map((cell) => `cell-${cell}`);
  const shardsByName = openObjects(stateFolder, "ClaimShard", shardNames);
  const ledgersByName = openObjects(stateFolder, "CellLedger", ledgerNames);
  const shards = shardNames.flatMap((name) => shardsByName.get(name) ?? []);
  await fillClaims(shards, variant);
  const ledger = ledgersByName.get(`cell-${CELL}`);
  if (ledger !== undefined) await fillLeases(ledger, shards, variant);
  for (const sql of [...shards, ...ledgersByName.values()]) sql.close();
  return keys;
}

async function fillLeases(
  ledger: FileSql,
  shards: readonly FileSql[],
  { decided, outstanding }: Variant,
): Promise<void> {
  const filler = new LeaseFiller(ledger);
  await filler.decided(decided);
  await filler.outstanding(outstanding, shards);
}

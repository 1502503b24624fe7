import type { DirectoryCalls, LedgerCalls, ShardCalls } from "../../../src/coordinator/kernel/methods.ts";
import type { Env } from "../../../src/coordinator/env.ts";
import type { CellLedger, ClaimShard, Directory } from "../../../src/coordinator/objects/durable-objects.ts";
import { DIRECTORY_NAME, ledgerName, shardName } from "../../../src/coordinator/objects/identity.ts";

/**
 * The stubs of the objects. With them a test can run code inside an object, ring its alarm and read its
 * storage.
 */
interface Stubs {
  ledger(cell: string): LedgerCalls & DurableObjectStub<CellLedger>;
  shard(index: number): ShardCalls & DurableObjectStub<ClaimShard>;
  directory(): DirectoryCalls & DurableObjectStub<Directory>;
}

export function stubsOf({ CELL_LEDGER, CLAIM_SHARD, DIRECTORY }: Env): Stubs {
  const stubs = {
    ledger: (cell: string) => CELL_LEDGER.getByName(ledgerName(cell)),
    shard: (index: number) => CLAIM_SHARD.getByName(shardName(index)),
    directory: () => DIRECTORY.getByName(DIRECTORY_NAME),
  };
  return stubs as Stubs;
}

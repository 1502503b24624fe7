import { configOf, type Env } from "../../../src/env.ts";
import type { CellLedger } from "../../../src/objects/cell-ledger.ts";
import type { ClaimShard } from "../../../src/objects/claim-shard.ts";
import type { Directory } from "../../../src/objects/directory.ts";
import { objectsOf } from "../../../src/objects/objects.ts";

/**
 * The stubs of the objects. With them a test can run code inside an object, ring its alarm and read its
 * storage.
 */
interface Stubs {
  ledger(cell: string): DurableObjectStub<CellLedger>;
  shard(index: number): DurableObjectStub<ClaimShard>;
  directory(): DurableObjectStub<Directory>;
}

export const stubsOf = (env: Env): Stubs => objectsOf(env, configOf(env)) as unknown as Stubs;

import { reset, runInDurableObject } from "cloudflare:test";
import { configOf, type Env } from "../../../src/coordinator/env.ts";
import { stubsOf } from "./stubs.ts";

type Start = (instance: unknown, state: DurableObjectState) => Promise<unknown>;

const start: Start = (_, { storage }) => storage.getAlarm();

/**
 * Deletes what the objects and D1 have stored. `reset` alone keeps the storage of an object that was evicted,
 * and workerd evicts an object that was idle for 10 s. So the objects are started first: those of the cells
 * that are registered, and the shards. D1 is such an object, too.
 */
export async function resetAll(env: Env): Promise<void> {
  const objects = stubsOf(env);
  const { initialShards: shards } = configOf(env);
  const cells = await runInDurableObject(objects.directory(), (_, { storage }) =>
    storage.sql.exec<{ cell: string }>("SELECT cell FROM cell").toArray(),
  );
  await Promise.all([
    env.DB.prepare("SELECT 1").all(),
    ...cells.map(({ cell }) => runInDurableObject(objects.ledger(cell), start)),
    ...Array.from({ length: shards }, (_, shard) => runInDurableObject(objects.shard(shard), start)),
  ]);
  await reset();
}

import { evictAllDurableObjects, runInDurableObject } from "cloudflare:test";
import { configOf, type Env } from "../../../src/env.ts";
import { stubsOf } from "./stubs.ts";

/**
 * Starts a new instance of every object from its storage. All of them are started, because `reset` keeps the
 * storage of objects that are evicted.
 */
export async function restartObjects(env: Env, ...cells: string[]): Promise<void> {
  await evictAllDurableObjects();
  const objects = stubsOf(env);
  const start = (_: unknown, state: DurableObjectState): Promise<number | null> => state.storage.getAlarm();
  await runInDurableObject(objects.directory(), start);
  for (const cell of cells) await runInDurableObject(objects.ledger(cell), start);
  for (let shard = 0; shard < configOf(env).initialShards; shard += 1)
    await runInDurableObject(objects.shard(shard), start);
}

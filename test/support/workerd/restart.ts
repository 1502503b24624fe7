import { evictAllDurableObjects, runInDurableObject } from "cloudflare:test";
import { configOf, type Env } from "../../../src/coordinator/env.ts";
import { stubsOf } from "./stubs.ts";

/**
 * Starts a new instance of every object from its storage. All of them are started, because `reset` keeps the
 * storage of objects that are evicted. An object that still works is not evicted, so it is tried again.
 */
export async function restartObjects(env: Env, ...cells: string[]): Promise<void> {
  const objects = stubsOf(env);
  const stubs = [
    objects.directory(),
    ...cells.map((cell) => objects.ledger(cell)),
    ...Array.from({ length: configOf(env).initialShards }, (_, shard) => objects.shard(shard)),
  ];
  const started = (): Promise<object[]> =>
    Promise.all(
      stubs.map((stub) =>
        runInDurableObject(stub as DurableObjectStub, async (instance, { storage }) => {
          await storage.getAlarm();
          return instance;
        }),
      ),
    );
  const old = new Set(await started());
  do await evictAllDurableObjects();
  while ((await started()).some((instance) => old.has(instance)));
}

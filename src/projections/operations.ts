import type { Operation, OperationSet } from "../core/operations/operations.ts";
import { ok, type Result } from "../core/refusal.ts";
import { askAgain, type GrowthDriver } from "./growth-driver.ts";
import { mirrorOperations } from "./mirror.ts";

/** An operation of which nobody has said that it has ended is looked at when it is this old. */
const SETTLE_AFTER_MS = 60_000;

const readOperations = (driver: GrowthDriver): Promise<Result<OperationSet>> =>
  askAgain(driver, ({ envelope, objects }) => objects.directory().operations(envelope));

/**
 * Copies the operations that run into D1 (A7), and ends those of which their parts say that they have ended,
 * because the calls that should have done so may have died (A6).
 */
export async function settleOperations(driver: GrowthDriver): Promise<Result<unknown>> {
  const read = await readOperations(driver);
  if (!read.ok) return read;
  const copied = await mirrorOperations(driver.database, read.value);
  const oldMs = driver.clock.now() - SETTLE_AFTER_MS;
  let settled: Result<unknown> = copied;
  for (const operation of read.value.operations)
    if (operation.startedAtMs <= oldMs) {
      const done = await settle(driver, operation);
      settled = done.ok ? settled : done;
    }
  return settled;
}

/** Ends the reconciliation of a part, if there is one and the part is complete. */
export async function settleReconciliation(driver: GrowthDriver, part: string): Promise<Result<unknown>> {
  const read = await readOperations(driver);
  if (!read.ok) return read;
  const running = read.value.operations.find(({ id }) => id === part);
  return running === undefined ? ok(null) : settle(driver, running);
}

/**
 * Ends an operation of which its part says that it has ended. A growth ends by its own steps, and no part
 * knows of a restore.
 */
async function settle(driver: GrowthDriver, operation: Operation): Promise<Result<unknown>> {
  if (operation.kind !== "reconciliation") return ok(null);
  const shard = Number(operation.about.replace("shard-", ""));
  const part = await askAgain(driver, ({ envelope, objects }) => objects.shard(shard).part(envelope));
  if (!part.ok || part.value.state !== "complete") return part;
  const { id, position } = operation;
  return askAgain(driver, ({ envelope, objects }) =>
    objects.directory().endOperation({ ...envelope, operation: { id, position } }),
  );
}

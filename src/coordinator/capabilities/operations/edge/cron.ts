import { fanOut } from "../../../kernel/fan-out.ts";
import type { Operation } from "../operations.ts";
import type { Result } from "../../../kernel/refusal.ts";
import { askAgain, type GrowthDriver } from "../../growth/edge/growth-driver.ts";
import { mirrorOperations } from "../../projection/edge/mirror.ts";

/**
 * An operation of which nobody has said that it has ended is looked at when it is this old: longer than a
 * shard may take to accept its loss.
 */
const SETTLE_AFTER_MS = 180_000;

/**
 * Copies the operations that run into D1 (A7), and ends those of which their parts say that they have ended,
 * because the calls that should have done so may have died (A6). It asks no part after a moment.
 */
export async function settleOperations(driver: GrowthDriver, untilMs: number): Promise<Result<unknown>> {
  const read = await askAgain(driver, ({ envelope, objects }) => objects.directory().operations(envelope));
  if (!read.ok) return read;
  const copied = await mirrorOperations(driver.database, read.value);
  const oldMs = driver.clock.now() - SETTLE_AFTER_MS;
  const old = read.value.operations.filter(
    ({ kind, startedAtMs }) => kind === "reconciliation" && startedAtMs <= oldMs,
  );
  await fanOut(old, driver.limits.fanOut, async (operation) => {
    if (driver.clock.now() < untilMs) await settle(driver, operation);
  });
  return copied;
}

/** Ends the reconciliation of a shard that says that it is complete. If this fails, the next run does it. */
async function settle(driver: GrowthDriver, { id, position }: Operation): Promise<void> {
  const shard = Number(id.replace("shard-", ""));
  const part = await askAgain(driver, ({ envelope, objects }) => objects.shard(shard).part(envelope));
  if (part.ok && part.value.state === "complete")
    await askAgain(driver, ({ envelope, objects }) =>
      objects.directory().endOperation({ ...envelope, operation: { id, position } }),
    );
}

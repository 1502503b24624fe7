import { ask } from "../../../kernel/ask.ts";
import type { Limits } from "../../../../common/limits.ts";
import type { Envelope } from "../../../kernel/messages.ts";
import { ok, refused, type Result } from "../../../kernel/refusal.ts";
import type { Objects } from "../../../objects/objects.ts";
import type { WallClock } from "../../../runtime.ts";
import { type Database, causeOf } from "../../../d1/database.ts";

/** What carries out the steps of a growth: a request, or a run of the cron. */
export interface GrowthDriver {
  /** The fields that all messages have. They change when the new placement is in force. */
  readonly envelope: Envelope;
  objects: Objects;
  database: Database;
  limits: Limits;
  clock: WallClock;
}

/** How long a step waits for an answer. A shard sends messages to other shards before it answers. */
const ANSWER_MS = 20_000;

/** Asks an object. If it has another placement, it says so, and is asked again with that. */
export async function askAgain<T>(
  driver: GrowthDriver,
  call: (driver: GrowthDriver) => Promise<Result<T>>,
): Promise<Result<T>> {
  const { placement } = driver.envelope;
  const send = () => ask(driver.clock, ANSWER_MS, async () => call(driver));
  let answer = await send();
  if (answer.kind === "refused" && driver.envelope.placement !== placement) answer = await send();
  if (answer.kind === "ok") return ok(answer.value);
  if (answer.kind === "refused") return { ok: false, refusal: answer.refusal };
  return refused("UNAVAILABLE", causeOf(answer), { retryAfterMs: 1_000 });
}

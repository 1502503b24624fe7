import { CommandError } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import { exitCodes } from "../framework/exit-codes.ts";
import { reminder } from "../output/reminder.ts";
import type { Result } from "../output/result.ts";
import { nextOf, transferText } from "./transfer-text.ts";

const PAUSE_MS = 1_000;
/** Shards rewrite 20,000 claims in a few seconds. An unreachable one is asked again every minute. */
const MOST_PAUSES = 600;

/** Waits until all shards have rewritten the names. They do so by themselves: nothing is sent to them. */
export async function finishTransfer(context: Context, id: string): Promise<Result> {
  const { transfers } = await context.client();
  const remind = reminder(context.io);
  for (let pauses = 0; ; pauses += 1) {
    const transfer = await transfers.get(id);
    if (transfer.state === "FINISHED")
      return {
        document: { transfer },
        text: (style) => transferText(transfer, style),
        nextSteps: nextOf(transfer),
      };
    if (transfer.state !== "CUT")
      throw new CommandError(
        `transfer ${id} is ${transfer.state}: it ends only after a cut`,
        exitCodes.conflict,
        nextOf(transfer),
      );
    if (pauses === MOST_PAUSES)
      throw new CommandError(
        `shards still rewrite the names of transfer ${id}. The destination has them. The same command goes ` +
          "on waiting",
        exitCodes.unavailable,
        ["leasehold status"],
      );
    await remind("waits until all shards have rewritten the names");
    await context.io.wait(PAUSE_MS);
  }
}

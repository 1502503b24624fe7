import type { Context } from "../framework/context.ts";
import { exitCodes } from "../framework/exit-codes.ts";
import type { Result } from "../output/result.ts";
import { nextOf, transferText } from "./transfer-text.ts";

export async function showTransfer(context: Context, id: string): Promise<Result> {
  const transfer = await (await context.client()).transfers.get(id);
  return {
    document: { transfer },
    text: (style) => transferText(transfer, style),
    notes: transfer.is_rebuilt && transfer.state === "PREPARED" ? [REBUILT] : [],
    nextSteps: nextOf(transfer),
  };
}

const REBUILT =
  "The ledger of the destination has lost this transfer and got it back from the shards. It may have been " +
  "cut. Look which cell works with the names, then cut or abort it.";

/** Shows whether the rows of both cells equal the claims, and what else a cut needs. */
export async function verifyTransfer(context: Context, id: string): Promise<Result> {
  const transfer = await (await context.client()).transfers.get(id);
  const isReady = transfer.missing.length === 0;
  return {
    document: { transfer, is_ready: isReady },
    text: (style) => transferText(transfer, style),
    notes: isReady
      ? [transfer.state === "PREPARED" ? "The transfer can be cut." : `The transfer is ${transfer.state}.`]
      : transfer.missing.map((each) => `Missing: ${each}.`),
    nextSteps: nextOf(transfer).filter((line) => !line.includes("transfers verify")),
    exitCode: isReady ? exitCodes.ok : exitCodes.drift,
  };
}

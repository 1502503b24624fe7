import type { Upgrade } from "../../client/api-types.ts";
import { callRoute } from "../connection/call-route.ts";
import { mayBeDone } from "../connection/may-be-done.ts";
import { CommandError, messageOf } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import { exitCodes } from "../framework/exit-codes.ts";

/** A call asks every part, twice at most. */
const TIMEOUT_MS = 60_000;

const PATH = "/v1/admin/upgrade";

export async function readUpgrade(context: Context): Promise<Upgrade> {
  const request = { method: "GET", path: PATH, timeoutMs: TIMEOUT_MS };
  return (await callRoute<{ upgrade: Upgrade }>(context, request)).upgrade;
}

/** An error says if the outcome is unknown. */
export async function finishUpgrade(context: Context, format: number, reason: string): Promise<Upgrade> {
  const request = {
    method: "POST",
    path: `${PATH}/finish`,
    body: JSON.stringify({ format, reason }),
    timeoutMs: TIMEOUT_MS,
  };
  try {
    return (await callRoute<{ upgrade: Upgrade }>(context, request)).upgrade;
  } catch (error) {
    if (!mayBeDone(error)) throw error;
    throw new CommandError(
      `${messageOf(error).replace(/\.$/, "")}. It may have been done: look before you repeat it`,
      exitCodes.unavailable,
      ["leasehold upgrade"],
    );
  }
}

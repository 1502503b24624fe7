import { callRoute } from "../connection/call-route.ts";
import { mayBeDone } from "../connection/may-be-done.ts";
import { CommandError, messageOf } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import { exitCodes } from "../framework/exit-codes.ts";
import { commandLine } from "../../text/shell-word.ts";

/** The deployment asks other parts meanwhile, and its own limit is two minutes. */
const TIMEOUT_MS = 130_000;

/** Calls a route of a part, such as `/reconcile`. An error says if the outcome of a change is unknown. */
export async function callPart<T>(
  context: Context,
  method: "GET" | "POST",
  id: string,
  action = "",
  body?: object,
): Promise<T> {
  const path = `/v1/admin/parts/${encodeURIComponent(id)}${action}`;
  const request = {
    method,
    path,
    timeoutMs: TIMEOUT_MS,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  };
  try {
    return await callRoute<T>(context, request);
  } catch (error) {
    if (method === "GET" || !mayBeDone(error)) throw error;
    throw new CommandError(
      `${messageOf(error).replace(/\.$/, "")}. It may have been done: look at the part before you repeat it`,
      exitCodes.unavailable,
      [commandLine("parts", "show", id)],
    );
  }
}

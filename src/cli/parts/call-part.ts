import { callRoute } from "../connection/call-route.ts";
import { changeRoute } from "../connection/change-route.ts";
import type { Context } from "../framework/context.ts";
import { commandLine } from "../../common/text/shell-word.ts";

/** The deployment asks other parts meanwhile, and its own limit is two minutes. */
const TIMEOUT_MS = 130_000;

/** Calls a route of a part, such as `/reconcile`. An error says if the outcome of a change is unknown. */
export function callPart<T>(
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
  return method === "GET"
    ? callRoute<T>(context, request)
    : changeRoute<T>(context, request, commandLine("parts", "show", id), "look at the part");
}

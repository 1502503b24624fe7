import type { Upgrade } from "../../users/client/api-types.ts";
import { callRoute } from "../connection/call-route.ts";
import { changeRoute } from "../connection/change-route.ts";
import type { Context } from "../framework/context.ts";

/** A call asks every part, twice at most. */
const TIMEOUT_MS = 60_000;

const PATH = "/v1/admin/upgrade";

export async function readUpgrade(context: Context): Promise<Upgrade> {
  const request = { method: "GET", path: PATH, timeoutMs: TIMEOUT_MS };
  return (await callRoute<{ upgrade: Upgrade }>(context, request)).upgrade;
}

export async function finishUpgrade(context: Context, format: number, reason: string): Promise<Upgrade> {
  const body = JSON.stringify({ format, reason });
  const request = { method: "POST", path: `${PATH}/finish`, body, timeoutMs: TIMEOUT_MS };
  return (await changeRoute<{ upgrade: Upgrade }>(context, request, "leasehold upgrade")).upgrade;
}

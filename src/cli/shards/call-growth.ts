import type { Shards } from "../../users/client/api-types.ts";
import { callRoute } from "../connection/call-route.ts";
import { changeRoute } from "../connection/change-route.ts";
import type { Context } from "../framework/context.ts";

export type Growth = NonNullable<Shards["growth"]>;

/** A call makes steps for some seconds, and waits for shards. */
const TIMEOUT_MS = 60_000;

const PATH = "/v1/admin/growth";

export const readShards = (context: Context): Promise<Shards> =>
  callRoute(context, { method: "GET", path: PATH, timeoutMs: TIMEOUT_MS });

/** Makes steps of the growth that runs. They can be repeated after any failure. */
export const stepGrowth = (context: Context): Promise<Shards> =>
  callRoute(context, { method: "POST", path: `${PATH}/steps`, timeoutMs: TIMEOUT_MS });

/** Changes the growth. `action` is a path, such as `/cut`. */
export function changeGrowth(context: Context, action: string, body: object): Promise<Shards> {
  const request = {
    method: "POST",
    path: `${PATH}${action}`,
    body: JSON.stringify(body),
    timeoutMs: TIMEOUT_MS,
  };
  return changeRoute<Shards>(context, request, "leasehold shards");
}

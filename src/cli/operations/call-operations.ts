import type { Operation } from "../../users/client/api-types.ts";
import { callRoute } from "../connection/call-route.ts";
import type { Context } from "../framework/context.ts";

const PATH = "/v1/admin/operations";

export const readOperations = async (context: Context): Promise<readonly Operation[]> => {
  const read = await callRoute<{ operations: Operation[] }>(context, { method: "GET", path: PATH });
  return read.operations;
};

/** Keeps other operations from starting while a backup is restored. */
export const startRestore = (context: Context, id: string, reason: string): Promise<unknown> =>
  callRoute(context, { method: "POST", path: PATH, body: JSON.stringify({ id, kind: "restore", reason }) });

export const endRestore = (context: Context, id: string, reason: string): Promise<unknown> =>
  callRoute(context, {
    method: "POST",
    path: `${PATH}/${encodeURIComponent(id)}/end`,
    body: JSON.stringify({ reason }),
  });

import type { Webhook } from "../../users/client/api-types.ts";
import { callRoute } from "../connection/call-route.ts";
import { CommandError, usageError } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import { exitCodes } from "../framework/exit-codes.ts";

/** What a person types to confirm. Ids begin with a time, so their ends differ most. */
const TYPED_CHARS = 8;

export const typedNameOf = (id: string): string => id.slice(-TYPED_CHARS);

export async function readWebhooks(context: Context): Promise<readonly Webhook[]> {
  const request = { method: "GET", path: "/v1/admin/webhooks" };
  return (await callRoute<{ webhooks: Webhook[] }>(context, request)).webhooks;
}

/** @throws a usage error for what is no id, such as an address, before anything is sent */
export function pathOf(id: string, rest = ""): string {
  if (!/^[\w-]{1,64}$/.test(id)) throw usageError("ID must be the id of a webhook, not its address");
  return `/v1/admin/webhooks/${id}${rest}`;
}

/** @throws an error with the exit code 4 if there is no such webhook */
export async function findWebhook(context: Context, id: string): Promise<Webhook> {
  pathOf(id);
  const webhook = (await readWebhooks(context)).find((each) => each.id === id);
  if (webhook === undefined)
    throw new CommandError(`there is no webhook ${id}`, exitCodes.notFound, ["leasehold webhooks ls"]);
  return webhook;
}

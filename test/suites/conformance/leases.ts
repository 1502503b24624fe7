/** Leases for tests, with names that no claim has had. */
import { v4 as newUuid } from "uuid";
import type { Client, KeyName } from "./client.ts";

let names = 0;
/** Returns a name that no claim has had. */
export const freshName = (): string => `name-${(names += 1)}-${newUuid()}`;

export const claim = (
  value: string,
  id: string | number = "42",
  type = "ROUTES",
): Record<string, unknown> => ({
  bucket: { type, value },
  subject: { type: "NAMESPACE", id: 7 },
  source: { type: "RAILS_TABLE_ROUTES", id },
});

/** Begins a lease of cell 1 with a fresh name. */
export async function begun(api: Client, value = freshName()): Promise<{ uuid: string; value: string }> {
  const uuid = newUuid();
  await api.json(201, "PUT", `/v1/cells/1/leases/${uuid}`, {
    key: "cell 1",
    body: { creates: [claim(value)] },
  });
  return { uuid, value };
}

export async function committed(api: Client, value = freshName()): Promise<{ uuid: string; value: string }> {
  const lease = await begun(api, value);
  await api.json(200, "POST", `/v1/cells/1/leases/${lease.uuid}/commit`, { key: "cell 1" });
  return lease;
}

/** Gives cell 1 a claim of a scope. */
export async function ownedScope(api: Client, scope = freshName(), value = freshName()): Promise<string> {
  const lease = `/v1/cells/1/leases/${newUuid()}`;
  await api.json(201, "PUT", lease, { key: "cell 1", body: { creates: [{ ...claim(value), scope }] } });
  await api.json(200, "POST", `${lease}/commit`, { key: "cell 1" });
  await applied(api, value);
  return scope;
}

/**
 * Makes sure that a committed name is a claim on its shard: a lookup lets the shard apply the decision (R2).
 * Until then, a begin that has other conflicts too may list the name as `leased`.
 */
export async function applied(api: Client, value: string, key: KeyName = "cell 1"): Promise<void> {
  const body = { buckets: [{ type: "ROUTES", value }] };
  await api.json(200, "POST", "/v1/records/lookup", { key, body });
}

export const addressOf = (cell: string): string => `https://cell-${cell}.test`;

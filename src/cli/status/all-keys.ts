import type { Client, Key } from "../../users/client/index.ts";
import { take } from "../output/result.ts";

const MAX_KEYS = 1_000;

/** Undefined: there are more, so that the newest keys may be among those that were not read. */
export async function allKeys(client: Client): Promise<readonly Key[] | undefined> {
  const { items, isCut } = await take(client.keys.list({ pageSize: MAX_KEYS }), MAX_KEYS);
  return isCut ? undefined : items;
}

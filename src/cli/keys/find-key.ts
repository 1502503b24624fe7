import type { Client, Key } from "../../users/client/index.ts";

/** Undefined: the key is not listed, as keys that were made offline. */
export async function findKey(client: Client, id: string): Promise<Key | undefined> {
  for await (const key of client.keys.list()) if (key.id === id) return key;
  return undefined;
}

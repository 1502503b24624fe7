import { v4 as newUuid } from "uuid";
import { Hmac } from "../../coordinator/auth/hmac.ts";
import { makeKey, type KeyPayload } from "../../coordinator/auth/key.ts";
import type { TestKeys } from "./types.ts";

/** Makes keys from the secret, as an operator makes the first key. */
export async function makeKeys(
  secret: string,
  cells: readonly string[],
  nowMs: number,
  lifetimeS: number,
): Promise<TestKeys> {
  const hmac = new Hmac(secret);
  const iat = Math.floor(nowMs / 1_000);
  const make = (holder: Pick<KeyPayload, "role" | "cell">): Promise<string> =>
    makeKey({ v: 1, id: newUuid(), ...holder, iat, exp: iat + lifetimeS }, hmac);
  const [operator, router] = await Promise.all([make({ role: "operator" }), make({ role: "router" })]);
  const byCell = new Map(
    await Promise.all(cells.map(async (cell) => [cell, await make({ role: "cell", cell })] as const)),
  );
  const cell = (id: string): string => {
    const key = byCell.get(id);
    if (key === undefined)
      throw new Error(
        `cell ${id} has no key: the coordinator was started with the cells ${cells.join(", ")}`,
      );
    return key;
  };
  return { operator, router, cell };
}

/** Selects the rows that run with every change: a part of the crashes around a write, and of other faults. */
import { env } from "../../support/workerd/api.ts";
import type { Row } from "./matrix.ts";

const { TEST_SLICE } = env as unknown as {
  /** `all`, or the number of a slice. */
  TEST_SLICE: string;
};

if (!/^(all|\d+)$/.test(TEST_SLICE))
  throw new Error(`TEST_SLICE must be all, or the number of a slice, not ${JSON.stringify(TEST_SLICE)}`);

export function isInSlice({ parts, fault, at }: Row): boolean {
  return TEST_SLICE === "all" || hashOf(`${fault} at ${at}`) % parts === Number(TEST_SLICE) % parts;
}

/** The same for a title each time, and evenly spread. */
function hashOf(title: string): number {
  let hash = 0;
  for (const character of title) hash = (Math.imul(hash, 31) + (character.codePointAt(0) ?? 0)) >>> 0;
  return hash;
}

/** The rows that run with every change: each single fault, and another part of the pairs each day. */
import { env } from "../../support/workerd/api.ts";
import type { Row } from "./matrix.ts";

/** The pairs are divided into so many parts. */
const PARTS = 14;

const { FAULT_PAIRS } = env as unknown as {
  /** `all`, or the number of a day. */
  FAULT_PAIRS: string;
};

export function isInSlice({ isPair, fault, at }: Row): boolean {
  return !isPair || FAULT_PAIRS === "all" || partOf(`${fault} at ${at}`) === Number(FAULT_PAIRS) % PARTS;
}

/** The same for one title always, and spread evenly over all of them. */
function partOf(title: string): number {
  let hash = 0;
  for (const character of title) hash = (Math.imul(hash, 31) + (character.codePointAt(0) ?? 0)) >>> 0;
  return hash % PARTS;
}

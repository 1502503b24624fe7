/**
 * Selects the rows that run with every change: all single faults, and a different part of the pairs each day.
 */
import { env } from "../../support/workerd/api.ts";
import type { Row } from "./matrix.ts";

/** The number of parts that the pairs are divided into. */
const PARTS = 14;

const { FAULT_PAIRS } = env as unknown as {
  /** `all`, or the number of a day. */
  FAULT_PAIRS: string;
};

if (!/^(all|\d+)$/.test(FAULT_PAIRS))
  throw new Error(`FAULT_PAIRS must be all, or the number of a day, not ${JSON.stringify(FAULT_PAIRS)}`);

export function isInSlice({ isPair, fault, at }: Row): boolean {
  return !isPair || FAULT_PAIRS === "all" || partOf(`${fault} at ${at}`) === Number(FAULT_PAIRS) % PARTS;
}

/** A stable part for each title, spread evenly. */
function partOf(title: string): number {
  let hash = 0;
  for (const character of title) hash = (Math.imul(hash, 31) + (character.codePointAt(0) ?? 0)) >>> 0;
  return hash % PARTS;
}

/**
 * Selects the rows that run with every change: a different part of the crashes around a write, and of the
 * other faults, each day.
 */
import { env } from "../../support/workerd/api.ts";
import type { Row } from "./matrix.ts";

const { FAULT_ROWS } = env as unknown as {
  /** `all`, or the number of a day. */
  FAULT_ROWS: string;
};

if (!/^(all|\d+)$/.test(FAULT_ROWS))
  throw new Error(`FAULT_ROWS must be all, or the number of a day, not ${JSON.stringify(FAULT_ROWS)}`);

export function isInSlice({ days, fault, at }: Row): boolean {
  return FAULT_ROWS === "all" || hashOf(`${fault} at ${at}`) % days === Number(FAULT_ROWS) % days;
}

/** The same for a title each time, and evenly spread. */
function hashOf(title: string): number {
  let hash = 0;
  for (const character of title) hash = (Math.imul(hash, 31) + (character.codePointAt(0) ?? 0)) >>> 0;
  return hash;
}

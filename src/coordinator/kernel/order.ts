import type { Refusal } from "./refusal.ts";

/**
 * The checks that can refuse a message or a part of it, by stage. The first one that refuses answers. Hooks
 * of one name run in the order of `capabilities/index.ts`. `test/coordinator/order.test.ts` makes each pair
 * of checks refuse.
 */
export const order = {
  /** A message with the placement in force (P1), before anything is done. Only a call has a caller. */
  message: ["caller", "call", "standing"],
  /** A begin, when it arrives, and once more in the transaction that grants its lease (B5). */
  grant: ["caller", "capabilities"],
  /** A begin that starts to work. */
  limits: ["leaseBytes", "ledgerBytes", "runningBegins", "outstandingLeases"],
  /** A prepare, in its transaction. Afterwards, only its names can be in the way. */
  prepare: ["residence", "completeness", "room", "holds"],
} as const;

type Stage = keyof typeof order;

/** What checks something at a stage. */
export type Checks<Name extends Stage, Subject> = Readonly<
  Record<(typeof order)[Name][number], (subject: Subject) => Refusal | undefined>
>;

/** Returns the first refusal of a stage. */
export function refusalAt<Name extends Stage, Subject>(
  stage: Name,
  checks: Checks<Name, Subject>,
  subject: Subject,
): Refusal | undefined {
  for (const name of order[stage] as readonly (typeof order)[Name][number][]) {
    const refusal = checks[name](subject);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

/** The one statement that may write without a name: it does nothing but at the very first start, before anything can be lost. */
const FIRST = /^CREATE TABLE IF NOT EXISTS meta /;

/** Fails on a write outside a transaction: it would have no name, and no fault would ever be put beside it (src/core/write-points.ts). */
export function checkNamed(statement: string, isInTransaction: boolean): void {
  if (isInTransaction || /^\s*select/i.test(statement) || FIRST.test(statement)) return;
  throw new Error(`a durable write without a name: ${statement.slice(0, 60)}`);
}

/**
 * The only statement that may write without a name. It has an effect only at the first start, before there is
 * anything to lose.
 */
const FIRST = /^CREATE TABLE IF NOT EXISTS meta /;

/**
 * Throws on a write outside of a transaction. Such a write has no name, so no test would inject a fault there
 * (src/coordinator/kernel/write-points.ts).
 */
export function checkNamed(statement: string, isInTransaction: boolean): void {
  if (isInTransaction || /^\s*select/i.test(statement) || FIRST.test(statement)) return;
  throw new Error(`a durable write needs a transaction with a write point: ${statement.slice(0, 60)}`);
}

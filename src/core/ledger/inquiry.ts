import type { Question, Verdict } from "../messages.ts";
import type { Begins } from "./begins.ts";
import type { LeaseRow, LedgerStore } from "./store.ts";

/**
 * What became of one execution (rule B8), from the rows and the running begins of this turn. Of the executions of a newer instance this
 * one knows nothing: it was replaced, or restored.
 */
export function answerQuestion(
  store: LedgerStore,
  begins: Begins,
  shard: number,
  question: Question,
): Verdict {
  if (question.incarnation > begins.incarnation) return "unknown";
  const row = store.find(question.lease);
  if (row === undefined) return begins.isRunning(question.lease, question) ? "running" : "gone";
  if (!isGrantedBy(row, shard, question)) return "gone";
  switch (row.state) {
    case "GRANTED":
      return "granted";
    case "COMMITTED":
      return "committed";
    case "ROLLED_BACK":
      return "rolled_back";
  }
}

/** The very execution whose yes the row rests on. A fence rests on none. */
function isGrantedBy(row: LeaseRow, shard: number, { incarnation, counter, epoch }: Question): boolean {
  if (row.epochs === null || row.incarnation !== incarnation || row.counter !== counter) return false;
  return (JSON.parse(row.epochs) as Record<string, number>)[shard] === epoch;
}

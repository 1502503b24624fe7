import type { Question, Verdict } from "../messages.ts";
import type { Begins } from "./begins.ts";
import type { LeaseRow, LedgerStore } from "./store.ts";

/**
 * What became of one execution (rule B8), from the rows and the running begins of this turn. Throws, so that the shard learns nothing,
 * when the execution is of a newer instance than this one: then this one was replaced and has no say.
 */
export function answerQuestion(store: LedgerStore, begins: Begins, shard: number, question: Question): Verdict {
  if (question.incarnation > begins.incarnation) throw new Error("asked about an incarnation newer than this instance");
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

/** The very execution whose yes the row rests on. A decided row that is applied everywhere has no epochs left: "gone". */
function isGrantedBy(row: LeaseRow, shard: number, { incarnation, counter, epoch }: Question): boolean {
  if (row.epochs === null || row.incarnation !== incarnation || row.counter !== counter) return false;
  return (JSON.parse(row.epochs) as Record<string, number>)[shard] === epoch;
}

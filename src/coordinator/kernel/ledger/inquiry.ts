import type { Question, Verdict } from "../messages.ts";
import type { Instances } from "../instances.ts";
import type { Begins } from "./begins.ts";
import { decodeExecutions } from "./executions.ts";
import type { LedgerStore } from "./store.ts";
import type { LeaseRow } from "./lease-table.ts";

/**
 * Returns what became of one execution (B8), from the rows and the running begins of this turn. About
 * executions of a newer instance it returns `unknown`, because this instance was replaced.
 */
export function answerQuestion(
  store: LedgerStore,
  begins: Begins,
  instances: Instances,
  shard: number,
  question: Question,
): Verdict {
  if (question.incarnation > instances.incarnation) return "unknown";
  const row = store.find(question.lease);
  if (row === undefined) return begins.isRunning(question.lease, question) ? "running" : "gone";
  if (!isGrantedBy(row, question.grantedBy ?? shard, question) || store.isApplied(row)) return "gone";
  switch (row.state) {
    case "GRANTED":
      return "granted";
    case "COMMITTED":
      return "committed";
    case "ROLLED_BACK":
      return "rolled_back";
  }
}

/** True if the lease's row was granted with exactly this execution (B4). A fence has no executions. */
function isGrantedBy(row: LeaseRow, shard: number, { incarnation, counter, epoch }: Question): boolean {
  if (row.epochs === null || row.incarnation !== incarnation || row.counter !== counter) return false;
  return decodeExecutions(row.epochs).get(shard)?.epoch === epoch;
}

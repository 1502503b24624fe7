import type { Answer } from "../../../kernel/ports.ts";

/** Whether the part that gave this answer has lost changes. Null: the answer does not tell. */
export function isLostBy(answer: Answer<unknown>): boolean | null {
  if (answer.kind === "ok") return false;
  return answer.kind === "refused" && answer.refusal.reason === "HISTORY_LOST" ? true : null;
}

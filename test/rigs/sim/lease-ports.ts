import { unknown, type Answer as CellAnswer } from "../../../src/client/answer.ts";
import type { LeaseState } from "../../../src/cell/remote-leases.ts";
import type { Conflict } from "../../../src/client/api-types.ts";
import type { Answer } from "../../../src/core/ports.ts";
import { errorCodes, type Conflict as CoreConflict } from "../../../src/core/refusal.ts";

/** Turns an answer of the simulated network into the types of the cell's side. */
export function cellAnswerOf(answer: Answer<{ state: LeaseState }>): CellAnswer<LeaseState> {
  if (answer.kind === "ok") return { kind: "ok", value: answer.value.state };
  if (answer.kind === "unknown") return unknown(answer.cause);
  const { code, detail, reason, conflicts = [] } = answer.refusal;
  const { status, retryable } = errorCodes[code];
  const answered = {
    kind: "refused",
    status,
    code,
    detail,
    conflicts: conflicts.map(apiConflict),
    retryable,
    outcomeKnown: true,
  } as const;
  return { ...answered, ...(reason === undefined ? {} : { reason }) };
}

const apiConflict = ({ list, index, bucket, kind, owner }: CoreConflict): Conflict => ({
  list,
  index,
  bucket,
  kind,
  owner,
});

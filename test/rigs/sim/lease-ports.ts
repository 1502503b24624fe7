import { unknown, type Answer as CellAnswer } from "../../../src/users/client/answer.ts";
import type { LeaseState } from "../../../src/users/cell/remote-leases.ts";
import type { Conflict } from "../../../src/users/client/api-types.ts";
import { listOf, type Op } from "../../../src/coordinator/kernel/messages.ts";
import type { Answer } from "../../../src/coordinator/kernel/ports.ts";
import { errorCodes, type Conflict as CoreConflict } from "../../../src/coordinator/kernel/refusal.ts";
import { bucketTypeName } from "./local.ts";

/**
 * Turns an answer of the simulated network into the types of the cell's side.
 *
 * @param ops the batch, if it is the answer of a begin
 */
export function cellAnswerOf(
  answer: Answer<{ state: LeaseState }>,
  ops: readonly Op[] = [],
): CellAnswer<LeaseState> {
  if (answer.kind === "ok") return { kind: "ok", value: answer.value.state };
  if (answer.kind === "unknown") return unknown(answer.cause);
  const { code, detail, reason, conflicts = [] } = answer.refusal;
  const { status, retryable } = errorCodes[code];
  const answered = {
    kind: "refused",
    status,
    code,
    detail,
    conflicts: conflicts.map(apiConflict(ops)),
    retryable,
    outcomeKnown: true,
  } as const;
  return { ...answered, ...(reason === undefined ? {} : { reason }) };
}

const apiConflict =
  (ops: readonly Op[]) =>
  ({ list, index, kind, owner }: CoreConflict): Conflict => {
    const op = ops.find((each) => listOf(each.kind) === list && each.index === index);
    if (op === undefined)
      throw new Error(`a conflict names ${list}[${index}], which the batch does not have`);
    return { list, index, bucket: { type: bucketTypeName(op.type), value: op.value }, kind, owner };
  };

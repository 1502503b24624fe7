import { operationRunning, type BeginOperation, type EndOperation, type EndRestore } from "./messages.ts";
import { inTheWayOf, type Operation, type OperationSet } from "./operations.ts";
import { MAX_SHARDS } from "../../kernel/placement.ts";
import { ok, refused, type Result } from "../../kernel/refusal.ts";
import type { DirectoryPart } from "../../kernel/directory/part.ts";
import { MAX_BELIEVED } from "../../kernel/instances.ts";

declare module "../../kernel/audit-trail.ts" {
  interface AuditedActions {
    start_restore: true;
    end_restore: true;
  }
}

// How the directory keeps the operations that run (A5, A6). Runs inside a transaction.

type Stored = Pick<DirectoryPart, "store">;
type Running = Pick<DirectoryPart, "store" | "hooks">;

const NONE: OperationSet = { position: 0, operations: [] };

/** The operations that run, without those of other capabilities. */
export const operationsIn = ({ store }: Stored): OperationSet => store.setting("operations", NONE);

const setOperations = ({ store }: Stored, operations: readonly Operation[]): OperationSet =>
  store.putSetting("operations", { operations });

/** Adds an operation, or replaces the one with its id. */
function putOperation(part: Stored, operation: Omit<Operation, "position">): Operation {
  const put = { ...operation, position: part.store.position + 1 };
  setOperations(part, [...operationsWithout(part, put.id), put]);
  return put;
}

const operationsWithout = (part: Stored, id: string): Operation[] =>
  operationsIn(part).operations.filter((operation) => operation.id !== id);

/** All operations that run, those of other capabilities included. */
export const runningOperations = (part: Running): Operation[] => [
  ...part.hooks.running.flatMap((running) => running()),
  ...operationsIn(part).operations,
];

/**
 * Begins an operation, unless another one is in the way. A reconciliation that runs already begins anew, so
 * that an end that was asked for before ends nothing (A6). A restore goes on as it was begun.
 */
export function beginOperation(
  part: Running & Pick<DirectoryPart, "audit">,
  { operation, operator }: BeginOperation,
  startedAtMs: number,
): Result<Operation> {
  // So there is at most one row for each shard, beside that of a restore.
  if (operation.kind === "reconciliation" && !isShard(operation.id))
    return refused("INVALID_ARGUMENT", `there is no ${operation.id}`);
  const other = inTheWayOf(operation, runningOperations(part));
  if (other !== undefined) return operationRunning(other);
  if (operation.kind === "restore") {
    const known = operationsIn(part).operations.find(
      ({ id, kind }) => id === operation.id && kind === "restore",
    );
    if (known !== undefined) return ok(known);
    if (part.audit.current.refusal !== undefined) return { ok: false, refusal: part.audit.current.refusal };
    part.audit.current.append(operator, {
      action: "start_restore",
      cell: null,
      target: operation.id,
      before: null,
      after: { about: operation.about },
    });
  }
  return ok(putOperation(part, { ...operation, startedAtMs, startedBy: operator.keyId }));
}

function isShard(id: string): boolean {
  const [, shard] = /^shard-(0|[1-9]\d{0,3})$/.exec(id) ?? [];
  return shard !== undefined && Number(shard) < MAX_SHARDS;
}

/** Ends an operation, unless it has begun again since its part was asked. Idempotent. */
export function endOperation(part: Stored, { operation: ended }: EndOperation): Result<null> {
  const running = operationsIn(part).operations.find(({ id }) => id === ended.id);
  if (running?.position === ended.position) setOperations(part, operationsWithout(part, ended.id));
  return ok(null);
}

/** Ends a restore. Idempotent. */
export function endRestore(
  part: Running & Pick<DirectoryPart, "audit">,
  { id, operator }: EndRestore,
): Result<null> {
  const named = runningOperations(part).filter((operation) => operation.id === id);
  const running = named.find(({ kind }) => kind === "restore");
  if (running === undefined) return named[0] === undefined ? ok(null) : operationRunning(named[0]);
  setOperations(part, operationsWithout(part, id));
  part.audit.current.append(operator, {
    action: "end_restore",
    cell: null,
    target: id,
    before: { about: running.about },
    after: null,
  });
  return ok(null);
}

/** What has ended since either of them is settled later (A6). Whatever is missing only excludes nothing. */
export function restoreOperations(part: Stored, copy: OperationSet): void {
  part.store.raiseTo(Math.min(copy.position, MAX_BELIEVED));
  const own = new Set(operationsIn(part).operations.map(({ id }) => id));
  for (const operation of copy.operations) if (!own.has(operation.id)) putOperation(part, operation);
}

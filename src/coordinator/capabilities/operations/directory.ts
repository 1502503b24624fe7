import { operationRunning, type BeginOperation, type EndOperation, type EndRestore } from "./messages.ts";
import { inTheWayOf, type Operation } from "./operations.ts";
import { MAX_SHARDS } from "../../kernel/placement.ts";
import { ok, refused, type Result } from "../../kernel/refusal.ts";
import type { DirectoryStore } from "../../kernel/directory/store.ts";
import type { AuditedStore } from "../../kernel/directory/audited.ts";

declare module "../../kernel/audit-trail.ts" {
  interface AuditedActions {
    start_restore: true;
    end_restore: true;
  }
}

// How the directory keeps the operations that run (A5, A6). Runs inside a transaction.

/** All operations that run, the growth included. */
export const runningOperations = ({ growth, operations }: DirectoryStore): Operation[] => [
  ...(growth === null
    ? []
    : [
        {
          id: growth.id,
          kind: "growth" as const,
          about: "shards",
          startedAtMs: growth.startedAtMs,
          startedBy: growth.startedBy,
          position: growth.position,
        },
      ]),
  ...operations.operations,
];

/**
 * Begins an operation, unless another one is in the way. A reconciliation that runs already begins anew, so
 * that an end that was asked for before ends nothing (A6). A restore goes on as it was begun.
 */
export function beginOperation(
  { store, audit }: AuditedStore,
  { operation, operator }: BeginOperation,
  startedAtMs: number,
): Result<Operation> {
  // So there is at most one row for each shard, beside that of a restore.
  if (operation.kind === "reconciliation" && !isShard(operation.id))
    return refused("INVALID_ARGUMENT", `there is no ${operation.id}`);
  const other = inTheWayOf(operation, runningOperations(store));
  if (other !== undefined) return operationRunning(other);
  if (operation.kind === "restore") {
    const known = store.operations.operations.find(
      ({ id, kind }) => id === operation.id && kind === "restore",
    );
    if (known !== undefined) return ok(known);
    if (audit.refusal !== undefined) return { ok: false, refusal: audit.refusal };
    audit.append(operator, {
      action: "start_restore",
      cell: null,
      target: operation.id,
      before: null,
      after: { about: operation.about },
    });
  }
  return ok(store.putOperation({ ...operation, startedAtMs, startedBy: operator.keyId }));
}

function isShard(id: string): boolean {
  const [, shard] = /^shard-(0|[1-9]\d{0,3})$/.exec(id) ?? [];
  return shard !== undefined && Number(shard) < MAX_SHARDS;
}

/** Ends an operation, unless it has begun again since its part was asked. Idempotent. */
export function endOperation(store: DirectoryStore, { operation: ended }: EndOperation): Result<null> {
  const running = store.operations.operations.find(({ id }) => id === ended.id);
  if (running?.position === ended.position) store.dropOperation(ended.id);
  return ok(null);
}

/** Ends a restore. Idempotent. */
export function endRestore({ store, audit }: AuditedStore, { id, operator }: EndRestore): Result<null> {
  const named = runningOperations(store).filter((operation) => operation.id === id);
  const running = named.find(({ kind }) => kind === "restore");
  if (running === undefined) return named[0] === undefined ? ok(null) : operationRunning(named[0]);
  store.dropOperation(id);
  audit.append(operator, {
    action: "end_restore",
    cell: null,
    target: id,
    before: { about: running.about },
    after: null,
  });
  return ok(null);
}

import type * as z from "zod";
import type { RevokedKey } from "../../keys/messages.ts";
import type { CellState, HistoryPoint, Operator } from "../../../kernel/messages.ts";
import type { LedgerReconciliation, PartStatus, ReconcileLedger, ShardReconciliation } from "../messages.ts";
import { ok, refused, type Result } from "../../../kernel/refusal.ts";
import type { Operation } from "../../operations/operations.ts";
import type { WaitUntil } from "../../../runtime.ts";
import { timeOf } from "../../../api/answers.ts";
import { partRoutes } from "./routes.ts";
import type { Deployment } from "../../../isolate/deployment.ts";
import type { Handlers } from "../../../api/handler.ts";
import { reconcileDirectory } from "./directory-handler.ts";
import { operatorOf, reasonFault } from "../../../api/operator.ts";
import { unknownShard } from "../../../isolate/known-shards.ts";
import { readLedgerPoint } from "../../projection/edge/pull.ts";
import {
  DIRECTORY,
  reach,
  readTimeoutMs,
  UNREADABLE_PROJECTION,
  withFailure,
} from "../../../isolate/reach.ts";

type Part = z.input<(typeof partRoutes)["getPart"]["responses"][200]["schema"]>["part"];
type Reconciliation = z.input<(typeof partRoutes)["reconcilePart"]["responses"][200]["schema"]>;

/** A reconciliation asks all ledgers or reads all holds of a cell, so it may take longer than other calls. */
const RECONCILE_TIMEOUT_MS = 120_000;

const UNSURE = "it may still be carried out; read the part before you repeat the call";

const partHandlers: Handlers<typeof partRoutes> = {
  async getPart({ deployment, waitUntil, params }) {
    const target = await targetOf(deployment, waitUntil, params.part);
    if (!target.ok) return target;
    return statusAnswer(deployment, { name: params.part }, target.value.status);
  },

  async reconcilePart(call) {
    const { deployment, waitUntil, params, body } = call;
    const { dry_run: dryRun, reason, declare_lost: isDeclared = false } = body;
    const fault = reasonFault(reason, deployment.config.limits);
    if (fault !== undefined) return fault;
    const target = await targetOf(deployment, waitUntil, params.part);
    if (!target.ok) return target;
    const before = await reach(
      readTimeoutMs(deployment.config.limits),
      { name: params.part },
      target.value.status,
    );
    if (!before.ok) return before;
    const { state, point } = before.value;
    // So a late copy of the message does not declare a second loss.
    const declared = isDeclared ? { declared: { incarnation: point?.incarnation ?? 0 } } : {};
    const operator = operatorOf(call, reason);
    const isLoss = !dryRun && (isDeclared || state !== "complete");
    const begun = isLoss ? await beginReconciliation(deployment, params.part, operator) : ok(null);
    if (!begun.ok) return begun;
    const done = await target.value.reconcile({ dryRun, operator, ...declared });
    if (!done.ok) return done;
    return ok({ status: 200, body: toApiReconciliation(params.part, dryRun, done.value) });
  },

  async finishPart(call) {
    const { deployment, waitUntil, params, body } = call;
    const { reason } = body;
    const fault = reasonFault(reason, deployment.config.limits);
    if (fault !== undefined) return fault;
    const target = await targetOf(deployment, waitUntil, params.part);
    if (!target.ok) return target;
    const reconciliation = await reconciliationOf(deployment, params.part);
    const finished = await statusAnswer(deployment, { name: params.part, advice: UNSURE }, () =>
      target.value.finish(operatorOf(call, reason)),
    );
    // If this fails, the cron ends it (A6).
    if (finished.ok && reconciliation !== undefined) await endOperation(deployment, reconciliation);
    return finished;
  },
};

/**
 * Notes that a shard is being reconciled, which keeps other operations from starting (A5). A ledger and the
 * directory are complete at once.
 */
async function beginReconciliation(
  { objects, envelope, config }: Deployment,
  part: string,
  operator: Operator,
): Promise<Result<unknown>> {
  if (!part.startsWith("shard-")) return ok(null);
  const operation = { id: part, kind: "reconciliation" as const, about: part };
  return reach(readTimeoutMs(config.limits), { name: DIRECTORY, advice: UNSURE }, () =>
    objects.directory().beginOperation({ ...envelope, operator, operation }),
  );
}

/** The reconciliation of a shard as it is before the shard is finished. A later one has another position. */
async function reconciliationOf(
  { objects, envelope, config }: Deployment,
  part: string,
): Promise<Operation | undefined> {
  if (!part.startsWith("shard-")) return undefined;
  const read = await reach(readTimeoutMs(config.limits), { name: DIRECTORY }, () =>
    objects.directory().operations(envelope),
  );
  return read.ok ? read.value.operations.find(({ id }) => id === part) : undefined;
}

const endOperation = ({ objects, envelope, config }: Deployment, operation: Operation): Promise<unknown> =>
  reach(readTimeoutMs(config.limits), { name: DIRECTORY }, () =>
    objects.directory().endOperation({ ...envelope, operation }),
  );

async function statusAnswer(
  { config }: Deployment,
  part: { name: string; advice?: string },
  ask: () => Promise<Result<PartStatus>>,
): Promise<Result<{ status: 200; body: { part: Part } }>> {
  const status = await reach(readTimeoutMs(config.limits), part, ask);
  return status.ok ? ok({ status: 200, body: { part: toApiPart(part.name, status.value) } }) : status;
}

/** What a reconciliation has found and done, without the fields that do not concern this kind of part. */
interface Reconciled {
  status: PartStatus;
  found: Partial<Omit<Reconciliation, "part" | "dry_run">>;
}

interface Target {
  status: () => Promise<Result<PartStatus>>;
  reconcile: (
    request: Pick<ReconcileLedger, "dryRun" | "declared" | "operator">,
  ) => Promise<Result<Reconciled>>;
  finish: (operator: Operator) => Promise<Result<PartStatus>>;
}

/** The calls of one kind of part. The first call of an object creates it, so it must exist. */
async function targetOf(deployment: Deployment, waitUntil: WaitUntil, part: string): Promise<Result<Target>> {
  const [kind, id = ""] = part.split("-");
  if (kind === "directory") return ok(directoryTarget(deployment, part));
  if (kind !== "shard") return ledgerTarget(deployment, part, id);
  const unknown = await unknownShard(deployment, waitUntil, Number(id));
  return unknown ?? ok(shardTarget(deployment, part, Number(id)));
}

function directoryTarget(deployment: Deployment, part: string): Target {
  const status = (): Promise<Result<PartStatus>> => deployment.objects.directory().part(deployment.envelope);
  return {
    status,
    reconcile: async (request) => {
      const done = await reconcileDirectory(deployment, request);
      if (!done.ok) return done;
      const { status: after, ...restored } = done.value;
      return ok({ status: after, found: { restored } });
    },
    finish: () => finishAtOnce(part, status),
  };
}

/** Ledgers and the directory are complete as soon as their loss is accepted. There is nothing to finish. */
async function finishAtOnce(
  part: string,
  status: () => Promise<Result<PartStatus>>,
): Promise<Result<PartStatus>> {
  const now = await status();
  return now.ok && now.value.state === "lost"
    ? refused("FAILED_PRECONDITION", `${part} has not accepted its loss; reconcile it`)
    : now;
}

function shardTarget(deployment: Deployment, part: string, index: number): Target {
  const { objects, envelope } = deployment;
  return {
    status: () => objects.shard(index).part(envelope),
    reconcile: async (request) => {
      const directory = await deployment.directory.read();
      if (!directory.ok) return directory;
      // The ledger of a removed cell has seen the shard too (H6).
      const cells = [...directory.value.cells.keys(), ...directory.value.removedCells.keys()];
      const done = await reach(RECONCILE_TIMEOUT_MS, { name: part, advice: UNSURE }, () =>
        objects.shard(index).reconcile({ ...envelope, ...request, cells }),
      );
      return done.ok ? ok(reconciledShard(done.value)) : done;
    },
    finish: async (operator) => {
      const directory = await deployment.directory.read();
      if (!directory.ok) return directory;
      const removedCells = [...directory.value.removedCells.keys()];
      return objects.shard(index).finishReconciliation({ ...envelope, operator, removedCells });
    },
  };
}

async function ledgerTarget(deployment: Deployment, part: string, id: string): Promise<Result<Target>> {
  const { objects, envelope } = deployment;
  const cell = await deployment.directory.presentCell(id);
  if (!cell.ok) return cell;
  const ledger = () => objects.ledger(id, cell.value.locationHint);
  const status = (): Promise<Result<PartStatus>> => ledger().part(envelope);
  return ok({
    status,
    reconcile: async (request) => {
      const revokedKeys = await revokedKeysOf(deployment, id);
      if (!revokedKeys.ok) return revokedKeys;
      // Its new positions must be above what D1 has seen, so this can't go on without D1.
      const copied = await readLedgerPoint(deployment.env, id);
      if (!copied.ok) return withFailure(copied, UNREADABLE_PROJECTION);
      const message = {
        ...envelope,
        ...request,
        revokedKeys: revokedKeys.value,
        removedAtMs: cell.value.removedAtMs,
        ...(copied.value === undefined ? {} : { copied: copied.value }),
      };
      const done = await reach(RECONCILE_TIMEOUT_MS, { name: part, advice: UNSURE }, () =>
        ledger().reconcile(message),
      );
      return done.ok ? ok(reconciledLedger(done.value)) : done;
    },
    finish: () => finishAtOnce(part, status),
  });
}

/**
 * The revoked keys of a cell. One more than a ledger remembers is enough: then it refuses all keys that
 * expire no later (A1). No clock leaves out expired ones, because it may be wrong (M4).
 */
function revokedKeysOf(
  { objects, envelope, config: { limits } }: Deployment,
  cell: string,
): Promise<Result<RevokedKey[]>> {
  const message = { ...envelope, cell, limit: limits.maxRevokedKeys + 1 };
  return reach(readTimeoutMs(limits), { name: DIRECTORY }, () => objects.directory().revokedKeysOf(message));
}

const toApiPoint = ({ incarnation, position }: HistoryPoint): HistoryPoint => ({ incarnation, position });

const toApiPart = (id: string, { state, point, loss }: PartStatus): Part => ({
  id,
  state,
  point: point && toApiPoint(point),
  loss: loss && {
    noticed_by: loss.noticedBy,
    noticed_at: timeOf(loss.noticedAtMs),
    seen: loss.seen && toApiPoint(loss.seen),
    point: loss.point && toApiPoint(loss.point),
  },
});

const reconciledShard = ({ status, lost, unreachable }: ShardReconciliation): Reconciled => ({
  status,
  found: {
    lost_leases: lost.map(({ cell, ...leases }) => ({ cell_id: cell, ...leases })),
    unreachable: unreachable.map((cell) => `ledger-${cell}`),
  },
});

const reconciledLedger = ({ status, rebuilt, unreachable, cellState }: LedgerReconciliation): Reconciled => ({
  status,
  found: {
    rebuilt_leases: rebuilt,
    unreachable: unreachable.map((shard) => `shard-${shard}`),
    cell_state: cellState satisfies CellState,
  },
});

const toApiReconciliation = (id: string, dryRun: boolean, { status, found }: Reconciled): Reconciliation => ({
  part: toApiPart(id, status),
  dry_run: dryRun,
  lost_leases: [],
  rebuilt_leases: [],
  unreachable: [],
  ...found,
});

export { partHandlers as handlers, partRoutes as routes };

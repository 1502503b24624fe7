import type * as z from "zod";
import type {
  CellState,
  HistoryPoint,
  LedgerReconciliation,
  PartStatus,
  ReconcileLedger,
  Reply,
  ShardReconciliation,
} from "../../core/messages.ts";
import { ok, refused, type Result } from "../../core/refusal.ts";
import { timeOf } from "../answers.ts";
import type { partRoutes } from "../contract/part-routes.ts";
import type { Deployment } from "../deployment.ts";
import type { Handlers } from "../handler.ts";
import { reasonFault } from "../reason.ts";
import { DIRECTORY, reach, readTimeoutMs } from "../reach.ts";

type Part = z.input<(typeof partRoutes)["getPart"]["responses"][200]["schema"]>["part"];
type Reconciliation = z.input<(typeof partRoutes)["reconcilePart"]["responses"][200]["schema"]>;

/** A reconciliation asks all ledgers or reads all holds of a cell, so it may take longer than other calls. */
const RECONCILE_TIMEOUT_MS = 120_000;

/** The number of keys that the directory lists in one answer. */
const KEYS_PER_PAGE = 1_000;

const UNSURE = "it may still be carried out; read the part, or repeat the call";

export const partHandlers: Handlers<keyof typeof partRoutes> = {
  getPart({ deployment, params }) {
    return ok(async () => {
      const target = await targetOf(deployment, params.part);
      if (!target.ok) return target;
      return statusAnswer(deployment, { name: params.part }, target.value.status);
    });
  },

  reconcilePart({ deployment, params, body }) {
    const { dry_run: dryRun, reason, declare_lost: isDeclared = false } = body;
    const fault = reasonFault(reason, deployment.config.limits);
    if (fault !== undefined) return fault;
    return ok(async () => {
      const target = await targetOf(deployment, params.part);
      if (!target.ok) return target;
      const done = await target.value.reconcile({ dryRun, isDeclared, reason });
      if (!done.ok) return done;
      return ok({ status: 200, body: toApiReconciliation(params.part, dryRun, done.value) });
    });
  },

  finishPart({ deployment, params, body: { reason } }) {
    const fault = reasonFault(reason, deployment.config.limits);
    if (fault !== undefined) return fault;
    return ok(async () => {
      const target = await targetOf(deployment, params.part);
      if (!target.ok) return target;
      return statusAnswer(deployment, { name: params.part, advice: UNSURE }, () =>
        target.value.finish(reason),
      );
    });
  },
};

async function statusAnswer(
  { config }: Deployment,
  part: { name: string; advice?: string },
  ask: () => Promise<Reply<PartStatus>>,
): Promise<Result<{ status: 200; body: { part: Part } }>> {
  const status = await reach(readTimeoutMs(config.limits), part, ask);
  return status.ok ? ok({ status: 200, body: { part: toApiPart(part.name, status.value) } }) : status;
}

interface Target {
  status: () => Promise<Reply<PartStatus>>;
  reconcile: (
    request: Pick<ReconcileLedger, "dryRun" | "isDeclared" | "reason">,
  ) => Promise<Result<ShardReconciliation | LedgerReconciliation>>;
  finish: (reason: string) => Promise<Reply<PartStatus>>;
}

/** The calls of one kind of part. The first call of an object creates it, so it must exist. */
async function targetOf(deployment: Deployment, part: string): Promise<Result<Target>> {
  const [kind, id = ""] = part.split("-");
  return kind === "shard" ? shardTarget(deployment, part, Number(id)) : ledgerTarget(deployment, part, id);
}

function shardTarget(deployment: Deployment, part: string, index: number): Result<Target> {
  const { objects, envelope, config } = deployment;
  if (index >= config.shards)
    return refused("NOT_FOUND", `there is no ${part}; the shards are shard-0 to shard-${config.shards - 1}`);
  return ok({
    status: () => objects.shard(index).part(envelope),
    reconcile: async (request) => {
      const directory = await deployment.directory.read();
      if (!directory.ok) return directory;
      const cells = [...directory.value.cells.keys()];
      return reach(RECONCILE_TIMEOUT_MS, { name: part, advice: UNSURE }, () =>
        objects.shard(index).reconcile({ ...envelope, ...request, cells }),
      );
    },
    finish: (reason) => objects.shard(index).finishReconciliation({ ...envelope, reason }),
  });
}

async function ledgerTarget(deployment: Deployment, part: string, id: string): Promise<Result<Target>> {
  const { objects, envelope } = deployment;
  const cell = await deployment.directory.presentCell(id);
  if (!cell.ok) return cell;
  const ledger = () => objects.ledger(id, cell.value.locationHint);
  const status = (): Promise<Reply<PartStatus>> => ledger().part(envelope);
  return ok({
    status,
    reconcile: async (request) => {
      const revokedKeys = await revokedKeysOf(deployment, id);
      if (!revokedKeys.ok) return revokedKeys;
      const message = { ...envelope, ...request, revokedKeys: revokedKeys.value };
      return reach(RECONCILE_TIMEOUT_MS, { name: part, advice: UNSURE }, () => ledger().reconcile(message));
    },
    // A ledger is complete as soon as its loss is accepted, so there is nothing to finish.
    finish: async () => {
      const now = await status();
      return now.ok && now.value.state === "lost"
        ? refused("FAILED_PRECONDITION", `${part} has not accepted its loss; reconcile it`)
        : now;
    },
  });
}

/** The revoked keys of a cell. No clock leaves out expired ones: it may be wrong (M4). */
async function revokedKeysOf(
  { objects, envelope, config }: Deployment,
  cell: string,
): Promise<Result<{ keyId: string; expiresAtMs: number }[]>> {
  const revoked: { keyId: string; expiresAtMs: number }[] = [];
  for (let afterPosition = 0; ;) {
    const message = { ...envelope, afterPosition, limit: KEYS_PER_PAGE };
    const page = await reach(readTimeoutMs(config.limits), { name: DIRECTORY }, () =>
      objects.directory().listKeys(message),
    );
    if (!page.ok) return page;
    for (const { keyId, expiresAtMs, revokedAtMs, cell: owner } of page.value.keys)
      if (owner === cell && revokedAtMs !== null) revoked.push({ keyId, expiresAtMs });
    const last = page.value.keys.at(-1);
    if (!page.value.more || last === undefined) return ok(revoked);
    afterPosition = last.position;
  }
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

function toApiReconciliation(
  id: string,
  dryRun: boolean,
  done: ShardReconciliation | LedgerReconciliation,
): Reconciliation {
  const part = toApiPart(id, done.status);
  if ("lost" in done) {
    return {
      part,
      dry_run: dryRun,
      lost_leases: done.lost.map(({ cell, ...lost }) => ({ cell_id: cell, ...lost })),
      rebuilt_leases: [],
      unreachable: done.unreachable.map((cell) => `ledger-${cell}`),
    };
  }
  const { rebuilt, unreachable, cellState } = done;
  return {
    part,
    dry_run: dryRun,
    lost_leases: [],
    rebuilt_leases: rebuilt,
    unreachable: unreachable.map((shard) => `shard-${shard}`),
    cell_state: cellState satisfies CellState,
  };
}

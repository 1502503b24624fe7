import type * as z from "zod";
import { fanOut } from "../../../kernel/fan-out.ts";
import type { Cell } from "../../../kernel/directory/messages.ts";
import type { CellStatus } from "../../../kernel/messages.ts";
import type { SettableState } from "../messages.ts";
import { ok, refused, type Refusal, type Result } from "../../../kernel/refusal.ts";
import { compareBytes, sourceOrder } from "../../../../common/source-order.ts";
import { cellRoutes } from "./routes.ts";
import type { cell as cellSchema } from "../../../api/contract/schemas.ts";
import type { Deployment } from "../../../isolate/deployment.ts";
import type { Call, Handlers } from "../../../api/handler.ts";
import { isPlacementConfirmed } from "../../../isolate/known-shards.ts";
import { operatorOf, reasonFault } from "../../../api/operator.ts";
import { pageOf } from "../../../api/paging.ts";
import { DIRECTORY, LEDGER, reach, readTimeoutMs } from "../../../isolate/reach.ts";
import { toApiCell } from "../../../api/answers.ts";

const cellHandlers: Handlers<typeof cellRoutes> = {
  async listCells(call) {
    const page = await pageOf<string>(call);
    if (!page.ok) return page;
    const { deployment } = call;
    const { limit, position, next } = page.value;
    const view = await deployment.directory.read();
    if (!view.ok) return view;
    const { cells: present, removedCells } = view.value;
    const removed = call.query.include_removed === "true" ? [...removedCells.values()] : [];
    const remaining = [...present.values(), ...removed]
      .toSorted((one, other) => compareBytes(sourceOrder(one.cell), sourceOrder(other.cell)))
      .filter(
        ({ cell }) => position === undefined || compareBytes(sourceOrder(cell), sourceOrder(position)) > 0,
      );
    const cells = remaining.slice(0, limit);
    const statuses = await fanOut(cells, deployment.config.limits.fanOut, (cell) =>
      statusOf(deployment, cell),
    );
    const body = {
      cells: cells.map((cell, index) => toApiCell(cell, statuses[index])),
      next_page_token: await next(remaining.length > limit ? cells.at(-1)?.cell : undefined),
    };
    return ok({ status: 200, body });
  },

  async addCell(call) {
    const { deployment, body } = call;
    const { cell_id: id, name, address, location_hint: locationHint, reason } = body;
    const fault = reasonFault(reason, deployment.config.limits);
    if (fault !== undefined) return fault;
    const lost = await forgottenCellsRefusal(deployment);
    if (lost !== undefined) return { ok: false, refusal: lost };
    const message = {
      ...deployment.envelope,
      operator: operatorOf(call, reason),
      cell: id,
      name,
      address,
      locationHint: locationHint ?? null,
    };
    const added = await reach(
      readTimeoutMs(deployment.config.limits),
      { name: DIRECTORY, advice: UNSURE },
      () => deployment.objects.directory().addCell(message),
    );
    deployment.directory.expire();
    if (!added.ok) return added;
    // The first call of a ledger creates it, so this call has the location hint.
    return ok({
      status: 201,
      body: { cell: toApiCell(added.value, await statusOf(deployment, added.value)) },
    });
  },

  async changeCell(call) {
    const { deployment, params, body } = call;
    const { cell } = params;
    const { name, address, reason } = body;
    const fault = reasonFault(reason, deployment.config.limits);
    if (fault !== undefined) return fault;
    const before = await deployment.directory.presentCell(cell);
    if (!before.ok) return before;
    const { updatedAtMs } = before.value;
    const change = {
      ...(name === undefined ? {} : { name }),
      ...(address === undefined ? {} : { address }),
    };
    const operator = operatorOf(call, reason);
    const message = { ...deployment.envelope, operator, cell, ...change, updatedAtMs };
    const changed = await reach(
      readTimeoutMs(deployment.config.limits),
      { name: DIRECTORY, advice: UNSURE },
      () => deployment.objects.directory().changeCell(message),
    );
    deployment.directory.expire();
    if (!changed.ok) return changed;
    return ok({
      status: 200,
      body: { cell: toApiCell(changed.value, await statusOf(deployment, changed.value)) },
    });
  },

  freezeCell: (call) => setState(call, "FROZEN"),
  drainCell: (call) => setState(call, "DRAINING"),
  unfreezeCell: (call) => setState(call, "ACTIVE"),
};

const UNSURE = "the change may have been made; read it, or repeat the call";

/**
 * Before the first cell fixes the placement, a shard must not have been used (P2). A shard that was used
 * shows that the directory has lost its cells, and a first cell would be registered with a placement that may
 * be wrong.
 */
async function forgottenCellsRefusal(deployment: Deployment): Promise<Refusal | undefined> {
  const before = await deployment.directory.read();
  if (!before.ok) return before.refusal;
  if (before.value.isPlaced) return undefined;
  const confirmed = await isPlacementConfirmed(deployment);
  const isUsed = confirmed.ok ? confirmed.value : confirmed.refusal.reason === "PLACEMENT_MISMATCH";
  if (!isUsed) return confirmed.ok ? undefined : confirmed.refusal;
  // Another call may have registered the first cell since, and then the shard may have been used.
  const after = await deployment.directory.read();
  if (!after.ok) return after.refusal;
  return after.value.isPlaced ? undefined : forgottenCells;
}

const forgottenCells: Refusal = refused(
  "UNAVAILABLE",
  "the directory has no cells, but the shards were used, so it has lost its cells; reconcile it with " +
    "`declare_lost`",
  { reason: "HISTORY_LOST", retryAfterMs: 60_000 },
).refusal;

/** Undefined if the cell's ledger cannot be reached. */
async function statusOf(
  { objects, envelope, config }: Deployment,
  { cell, locationHint }: Cell,
): Promise<CellStatus | undefined> {
  const { inquiryTimeoutMs } = config.limits;
  const status = await reach(inquiryTimeoutMs, { name: LEDGER }, () =>
    objects.ledger(cell, locationHint).status(envelope),
  );
  return status.ok ? status.value : undefined;
}

interface Changed {
  status: 200;
  body: { cell: z.input<typeof cellSchema> };
}

async function setState(
  call: Call<(typeof cellRoutes)["freezeCell" | "drainCell" | "unfreezeCell"]>,
  state: SettableState,
): Promise<Result<Changed>> {
  const { deployment, params, body } = call;
  const { objects, envelope } = deployment;
  const fault = reasonFault(body?.reason, deployment.config.limits);
  if (fault !== undefined) return fault;
  const cell = await deployment.directory.presentCell(params.cell);
  if (!cell.ok) return cell;
  const ledger = () => objects.ledger(cell.value.cell, cell.value.locationHint);
  const before = await reach(readTimeoutMs(deployment.config.limits), { name: LEDGER }, () =>
    ledger().status(envelope),
  );
  if (!before.ok) return before;
  const { stateVersion } = before.value;
  const set = await reach(readTimeoutMs(deployment.config.limits), { name: LEDGER, advice: UNSURE }, () =>
    ledger().setState({ ...envelope, operator: operatorOf(call, body?.reason), state, stateVersion }),
  );
  if (!set.ok) return set;
  return ok({ status: 200, body: { cell: toApiCell(cell.value, await statusOf(deployment, cell.value)) } });
}

export { cellHandlers as handlers, cellRoutes as routes };

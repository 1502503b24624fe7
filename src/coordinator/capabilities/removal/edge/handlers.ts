import type { Cell } from "../../../kernel/directory/messages.ts";
import type { CellStatus } from "../../../kernel/messages.ts";
import type { RemovalEnd } from "../messages.ts";
import { ok, type Result } from "../../../kernel/refusal.ts";
import { timeOf, toApiCell } from "../../../api/answers.ts";
import { removalRoutes } from "./routes.ts";
import type { Deployment } from "../../../isolate/deployment.ts";
import type { Handlers } from "../../../api/handler.ts";
import { operatorOf, reasonFault } from "../../../api/operator.ts";
import { DIRECTORY, LEDGER, reach, readTimeoutMs, withFailure } from "../../../isolate/reach.ts";
import { compareExport, comparisonOf, firstComparison } from "./compare-handler.ts";
import { countClaims, countPositionOf } from "./count-handler.ts";

const TOLD_LATER = "the cell is removed, and the directory is told within minutes; or repeat the call";

const removalHandlers: Handlers<typeof removalRoutes> = {
  async getRemoval(call) {
    const { deployment, params } = call;
    const from = await countPositionOf(call);
    if (!from.ok) return from;
    const found = await cellAndStatus(deployment, params.cell);
    if (!found.ok) return found;
    const counted = await countClaims(call, from.value);
    if (!counted.ok) return counted;
    const { counts, cursor } = counted.value;
    const types = await deployment.types.forAnswer(
      counts.flatMap(({ sourceType, type }) => [
        { kind: "source" as const, number: sourceType },
        { kind: "bucket" as const, number: type },
      ]),
    );
    if (!types.ok) return types;
    const { state, outstandingLeases, unappliedDecisions, removal } = found.value.status;
    const { removedAtMs } = found.value.cell;
    const body = {
      cell_id: params.cell,
      state,
      outstanding_leases: outstandingLeases,
      unapplied_decisions: unappliedDecisions,
      claims: counts.map(({ sourceType, type, claims }) => ({
        source_type: types.value.numbered("source", sourceType)?.name ?? "",
        bucket_type: types.value.numbered("bucket", type)?.name ?? "",
        count: claims,
      })),
      claims_total: counts.reduce((sum, { claims }) => sum + claims, 0),
      cursor,
      progress: removal && {
        exported_claims: removal.records,
        released_claims: removal.released,
      },
      removed_at: removedAtMs === null ? null : timeOf(removedAtMs),
    };
    return ok({ status: 200, body: { removal: body } });
  },

  async approveRemoval(call) {
    const { deployment, params } = call;
    const { objects, envelope, config } = deployment;
    const before = await comparisonOf(call);
    if (!before.ok) return before;
    // The ledger's position is read before the claims, so that a change since then is noticed (X2).
    const found = await cellAndStatus(deployment, params.cell);
    if (!found.ok) return found;
    const compared = await compareExport(
      call,
      before.value ?? firstComparison(deployment, found.value.status),
    );
    if (!compared.ok) return compared;
    if ("cursor" in compared.value) return ok({ status: 202, body: compared.value });
    const { position, records } = compared.value;
    const { cell } = found.value;
    const approved = await reach(
      readTimeoutMs(config.limits),
      { name: LEDGER, advice: "repeat the call" },
      () => objects.ledger(cell.cell, cell.locationHint).approveRemoval({ ...envelope, position, records }),
    );
    if (!approved.ok) return approved;
    return ok({ status: 200, body: { cell: toApiCell(cell, found.value.status) } });
  },

  async stepRemoval(call) {
    const { deployment, params, body } = call;
    const { objects, envelope, config } = deployment;
    const fault = reasonFault(body.reason, config.limits);
    if (fault !== undefined) return fault;
    const found = await cellAndStatus(deployment, params.cell);
    if (!found.ok) return found;
    const { cell, status } = found.value;
    const { beginDeadlineMs, commitDeadlineMs, batchOps } = config.limits;
    const timeoutMs = readTimeoutMs(config.limits) + beginDeadlineMs + commitDeadlineMs;
    const done = await reach(timeoutMs, { name: LEDGER, advice: "repeat the call" }, () =>
      objects.ledger(params.cell, cell.locationHint).removalStep({
        ...envelope,
        operator: operatorOf(call, body.reason),
        stateVersion: status.stateVersion,
        limit: body.limit ?? batchOps,
      }),
    );
    if (!done.ok) return done;
    const { state, released, left, end } = done.value;
    const told = end === null ? ok(null) : await tellDirectory(deployment, cell, end);
    if (!told.ok) return told;
    return ok({ status: 200, body: { state, released_claims: released, claims_left: left } });
  },
};

/** Tells the directory what the ledger has said: the cell is removed (X5). Nothing changes if it knows. */
async function tellDirectory(
  { objects, envelope, config, directory }: Deployment,
  { cell, removedAtMs: known }: Cell,
  { atMs: removedAtMs, operator }: RemovalEnd,
): Promise<Result<unknown>> {
  if (known !== null) return ok(null);
  const told = await reach(readTimeoutMs(config.limits), { name: DIRECTORY, advice: TOLD_LATER }, () =>
    objects.directory().removeCell({ ...envelope, operator, cell, removedAtMs }),
  );
  directory.expire();
  return told.ok
    ? told
    : withFailure(told, { detail: `cell ${cell} is removed, but ${told.refusal.detail}` });
}

async function cellAndStatus(
  deployment: Deployment,
  id: string,
): Promise<Result<{ cell: Cell; status: CellStatus }>> {
  const cell = await deployment.directory.presentCell(id);
  if (!cell.ok) return cell;
  const status = await statusOf(deployment, cell.value);
  return status.ok ? ok({ cell: cell.value, status: status.value }) : status;
}

const statusOf = (
  { objects, envelope, config }: Deployment,
  { cell, locationHint }: Cell,
): Promise<Result<CellStatus>> =>
  reach(readTimeoutMs(config.limits), { name: LEDGER }, () =>
    objects.ledger(cell, locationHint).status(envelope),
  );

export { removalHandlers as handlers, removalRoutes as routes };

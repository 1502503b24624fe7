import type * as z from "zod";
import { ok, refused, type Result } from "../../../kernel/refusal.ts";
import type { Transfer, TransferCall } from "../messages.ts";
import type { TransferParty } from "../range.ts";
import type { LedgerCalls } from "../../../kernel/methods.ts";
import { invalid } from "../../../api/batch.ts";
import { readTransferId } from "../../../api/contract/fields.ts";
import { transferRoutes } from "./routes.ts";
import type { Call, Handlers } from "../../../api/handler.ts";
import { LEDGER, reach, readTimeoutMs } from "../../../isolate/reach.ts";
import { reasonFault } from "../../../api/operator.ts";
import { toApiTransfer } from "./answers.ts";
import { askDestination, askerOf, authorize } from "../../../api/handlers/ledger-access.ts";
import { listTransfers } from "./list-handler.ts";
import { authorizeMove, movedClaimsOf } from "./moved-claims.ts";
import { planTransfer } from "./plan-handler.ts";

type Routes = typeof transferRoutes;
type TransferBody = z.input<Routes["getTransfer"]["responses"][200]["schema"]>;
type StepRoute = Exclude<keyof Routes, "planTransfer" | "listTransfers" | "prepareTransfer">;
type ChangeRoute = Exclude<StepRoute, "getTransfer">;

const REPEAT = "it may have been done; repeat the call";

const transferHandlers: Handlers<Routes> = {
  planTransfer,
  listTransfers,

  async prepareTransfer(call) {
    const { deployment, body } = call;
    const { limits } = deployment.config;
    const moved = movedClaimsOf(call);
    if (!moved.ok) return moved;
    const { from, to, scope, party } = moved.value;
    const fault = stepReasonFault(call) ?? switchBackFault(body.switch_back_of, from);
    if (fault !== undefined) return fault;
    const allowed = await authorizeMove(call, moved.value);
    if (!allowed.ok) return allowed;
    const before = body.switch_back_of === undefined ? undefined : await undone(call, from, party);
    if (before?.ok === false) return before;
    const request = {
      ...messageOf(call, party, body.uuid),
      from,
      scope,
      ...(before === undefined ? {} : { switchBackOf: before.value.value }),
    };
    const timeoutMs = limits.beginDeadlineMs + limits.exchangeTimeoutMs + 1_000;
    const prepared = await reach(
      timeoutMs,
      { name: LEDGER, advice: "repeat the call with the same UUID" },
      () => deployment.objects.ledger(to).prepareTransfer(request),
    );
    return prepared.ok ? answerOf(call, prepared.value, before?.value.headers) : prepared;
  },

  getTransfer: (call) => answerTo(call, (ledger, message) => ledger.getTransfer(message)),
  acceptTransfer: (call) => change(call, (ledger, message) => ledger.acceptTransfer(message)),
  cutTransfer: (call) =>
    change(call, (ledger, message) => ledger.decideTransfer({ ...message, outcome: "CUT" }), "decision"),
  abortTransfer: (call) =>
    change(call, (ledger, message) => ledger.decideTransfer({ ...message, outcome: "ABORTED" }), "decision"),

  async reportTransfer(call) {
    const { principal, body } = call;
    const { side: given, count, hash } = body;
    if (principal.role === "operator" && given === undefined)
      return invalid("side", "is required of operators; say whose rows these are: `from` or `to`");
    return change(call, (ledger, message) => {
      const own = message.party === "operator" ? "from" : message.party;
      return ledger.reportTransfer({ ...message, side: given ?? own, count, hash });
    });
  },
};

/** The transfer that a switch-back undoes. The ledger of its destination, the source of this one, has it. */
function undone(
  call: Call<Routes["prepareTransfer"]>,
  from: string,
  party: TransferParty,
): ReturnType<typeof askDestination<Transfer>> {
  const { deployment, principal, body } = call;
  const { transfer = "" } = readTransferId(body.switch_back_of ?? "") ?? {};
  const partyBefore = party === "operator" ? party : "to";
  const message = messageOf(call, partyBefore, transfer);
  return askDestination(
    principal,
    partyBefore,
    readTimeoutMs(deployment.config.limits),
    { name: LEDGER },
    () => deployment.objects.ledger(from).getTransfer(message),
  );
}

const switchBackFault = (id: string | undefined, from: string): Result<never> | undefined =>
  id === undefined || readTransferId(id)?.to === from
    ? undefined
    : invalid("switch_back_of", `must be the id of a transfer to cell ${from}, the source of this one`);

/** Operators must say why, because their changes have an audit entry (O1). */
function stepReasonFault({
  deployment,
  principal,
  body,
}: Pick<Call<Routes["prepareTransfer"]>, "deployment" | "principal"> & {
  body: { reason?: string | undefined } | undefined;
}): Result<never> | undefined {
  if (principal.role === "operator" && body?.reason === undefined)
    return invalid("reason", "is required of operators; say why you do this");
  return reasonFault(body?.reason, deployment.config.limits);
}

function messageOf(
  { deployment, principal, requestId, body, seen }: Call<Routes[StepRoute | "prepareTransfer"]>,
  party: TransferParty,
  transfer: string,
): TransferCall {
  const { reason } = { reason: undefined, ...body };
  return {
    // What the source has seen is of its own ledger.
    ...askerOf(deployment, principal, party === "to" ? seen : undefined),
    party,
    requestId,
    transfer,
    ...(reason === undefined ? {} : { reason }),
  };
}

type Work = (ledger: LedgerCalls, message: TransferCall) => ReturnType<LedgerCalls["getTransfer"]>;
interface Answer {
  status: 200;
  body: TransferBody;
  headers: Record<string, string>;
}
type Answered = Promise<Result<Answer>>;

function change(call: Call<Routes[ChangeRoute]>, work: Work, kind?: "decision"): Answered {
  const fault = stepReasonFault(call);
  if (fault !== undefined) return Promise.resolve(fault);
  const { limits } = call.deployment.config;
  return answerTo(call, work, kind === "decision" ? limits.commitDeadlineMs : readTimeoutMs(limits), REPEAT);
}

/** Calls the ledger that has the transfer, if the caller has a part in it. */
async function answerTo(
  call: Call<Routes[StepRoute]>,
  work: Work,
  timeoutMs = readTimeoutMs(call.deployment.config.limits),
  advice?: string,
): Answered {
  const { deployment, waitUntil, principal, params } = call;
  const { to = "", transfer = "" } = readTransferId(params.id) ?? {};
  const registered = await deployment.directory.cell(to, waitUntil);
  if (!registered.ok) return registered;
  const ledger = deployment.objects.ledger(to);
  const party = principal.cell === null ? "operator" : principal.cell === to ? "to" : "from";
  const message = messageOf(call, party, transfer);
  if (party === "from") {
    const allowed = await asSource(call, ledger, message);
    if (!allowed.ok) return allowed;
  }
  const target = { name: LEDGER, ...(advice === undefined ? {} : { advice }) };
  const found = await askDestination(principal, party, timeoutMs, target, () => work(ledger, message));
  return found.ok ? answerOf(call, found.value.value, found.value.headers) : found;
}

/**
 * Checks whether the caller's cell is the source of the transfer. That never changes. The source's own ledger
 * checks the key, because the destination's doesn't know it (Y7).
 */
async function asSource(
  { deployment, principal, params }: Call<Routes[StepRoute]>,
  ledger: LedgerCalls,
  message: TransferCall,
): Promise<Result<null>> {
  const authorized = await authorize(deployment, principal, principal.cell ?? "");
  if (!authorized.ok) return authorized;
  const found = await reach(readTimeoutMs(deployment.config.limits), { name: LEDGER }, () =>
    ledger.getTransfer(message),
  );
  if (!found.ok) return found.refusal.code === "NOT_FOUND" ? unknownTransfer(params.id) : found;
  return found.value.from === principal.cell ? ok(null) : unknownTransfer(params.id);
}

/** The same answer for a transfer of other cells, so that it doesn't reveal what exists. */
const unknownTransfer = (id: string): Result<never> =>
  refused("NOT_FOUND", `your cell has no part in a transfer ${id}, or it was forgotten`);

const answerOf = (
  { principal }: Call<Routes[StepRoute | "prepareTransfer"]>,
  transfer: Transfer,
  headers: Record<string, string> = {},
): Result<Answer> =>
  ok({ status: 200, body: { transfer: toApiTransfer(transfer, principal.cell) }, headers });

export { transferHandlers as handlers, transferRoutes as routes };

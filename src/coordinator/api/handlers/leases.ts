import type * as z from "zod";
import { v7 as newTimeOrderedUuid } from "uuid";
import type { BeginAnswer, BeginRequest, Lease, Outcome, PlacedLease } from "../../kernel/messages.ts";
import { ok, type Result } from "../../kernel/refusal.ts";
import { invalid, opsInParts, payloadHash, typesIn } from "../batch.ts";
import type { leaseRoutes } from "../contract/lease-routes.ts";
import type { placedLeaseAnswer } from "../contract/schemas.ts";
import type { Deployment } from "../../isolate/deployment.ts";
import type { Call, Handlers } from "../handler.ts";
import { pageOf } from "../paging.ts";
import { reasonFault } from "../operator.ts";
import { LEDGER, reach, readTimeoutMs, withFailure } from "../../isolate/reach.ts";
import { NO_TYPES, storedTypes, toApiLease } from "../answers.ts";
import { askerOf, askLedger, authorize } from "./ledger-access.ts";

export const leaseHandlers: Handlers<typeof leaseRoutes> = {
  async beginLease(call) {
    const { deployment, params } = call;
    const begin = await beginOf(call, params.uuid);
    if (!begin.ok) return begin;
    const begun = await sendBegin(call, begin.value);
    if (!begun.ok) return begun;
    const { value, headers } = begun.value;
    const lease = await shownLease(deployment, value.lease);
    if (!lease.ok) return lease;
    const answer = { lease: lease.value, ...positionsOf(value.lease) };
    return ok({ status: value.created ? 201 : 200, body: answer, headers });
  },

  async beginLeaseWithNewId(call) {
    const { deployment, params } = call;
    const uuid = newTimeOrderedUuid();
    const begin = await beginOf(call, uuid);
    if (!begin.ok) return begin;
    const begun = await sendBegin(call, begin.value);
    if (!begun.ok) return begun;
    const { value, headers } = begun.value;
    const lease = await shownLease(deployment, value.lease);
    if (!lease.ok) return lease;
    return ok({
      status: 201,
      body: { lease: lease.value, ...positionsOf(value.lease) },
      headers: { ...headers, location: `/v1/cells/${params.cell}/leases/${uuid}` },
    });
  },

  commitLease: (call) => decide(call, "COMMITTED"),
  rollbackLease: (call) => decide(call, "ROLLED_BACK"),

  async renewLease({ deployment, principal, params: { cell, uuid }, body: { reason }, seen }) {
    const fault = reasonFault(reason, deployment.config.limits);
    if (fault !== undefined) return fault;
    const request = { ...askerOf(deployment, principal, seen), lease: uuid, reason };
    const renewed = await askLedger(
      principal,
      readTimeoutMs(deployment.config.limits),
      () => deployment.objects.ledger(cell).renew(request),
      "the lease may not be renewed; repeat the call",
    );
    if (!renewed.ok) return renewed;
    const { value, headers } = renewed.value;
    return ok({ status: 200, body: { lease: toApiLease(NO_TYPES, value) }, headers });
  },

  async getLease({ deployment, principal, params: { cell, uuid }, seen }) {
    const request = { ...askerOf(deployment, principal, seen), lease: uuid };
    const timeoutMs = readTimeoutMs(deployment.config.limits);
    const lease = await askLedger(principal, timeoutMs, () =>
      deployment.objects.ledger(cell).getLease(request),
    );
    if (!lease.ok) return lease;
    const { value, headers } = lease.value;
    const shown = await shownLease(deployment, value);
    return shown.ok ? ok({ status: 200, body: { lease: shown.value }, headers }) : shown;
  },

  async listLeases(call) {
    const page = await pageOf<number>(call);
    if (!page.ok) return page;
    const { deployment, principal, params, query, seen } = call;
    const { limit, position, next } = page.value;
    const request = {
      ...askerOf(deployment, principal, seen),
      createdAfterMs: query.created_after ?? 0,
      afterPosition: position ?? 0,
      limit,
    };
    const timeoutMs = readTimeoutMs(deployment.config.limits);
    const listed = await askLedger(principal, timeoutMs, () =>
      deployment.objects.ledger(params.cell).listLeases(request),
    );
    if (!listed.ok) return listed;
    const { value, headers } = listed.value;
    const { leases, nextPosition } = value;
    return ok({
      status: 200,
      body: {
        leases: leases.map((lease) => toApiLease(NO_TYPES, lease)),
        next_page_token: await next(nextPosition === 0 ? undefined : nextPosition),
      },
      headers,
    });
  },
};

type BeginCall = Call<(typeof leaseRoutes)["beginLease" | "beginLeaseWithNewId"]>;

async function beginOf(call: BeginCall, lease: string): Promise<Result<BeginRequest>> {
  const { deployment, principal, params, requestId, body: batch, seen } = call;
  const { config } = deployment;
  const { wait_ms: waitMs = 0 } = batch;
  const { beginWaitMs } = config.limits;
  if (waitMs > beginWaitMs) return invalid("wait_ms", `must be at most ${beginWaitMs}`);
  const references = typesIn(batch);
  const types = await deployment.types.forRead(references);
  if (!types.ok) return types;
  const ops = await opsInParts(batch, types.value, deployment.shards, config.limits);
  if (!ops.ok) return ops;
  // A key that the ledger would refuse brings no type into use.
  const isNew = types.value.select(references).some(({ isInUse }) => !isInUse);
  const authorized = isNew
    ? withAdvice(await authorize(deployment, principal, params.cell), lease)
    : ok(null);
  if (!authorized.ok) return authorized;
  const used = await deployment.types.use(types.value, references);
  if (!used.ok) return used;
  const allowMissing = batch.allow_missing ?? false;
  const hash = payloadHash(ops.value, allowMissing);
  return ok({
    ...askerOf(deployment, principal, seen),
    requestId,
    lease,
    ops: ops.value,
    payloadHash: hash,
    allowMissing,
    ...(batch.verification === true ? { isVerification: true } : {}),
    ...(waitMs > 0 ? { waitMs, call: newTimeOrderedUuid() } : {}),
  });
}

const BEGIN_ADVICE = "the outcome is unknown; repeat the call with the same lease id";

/** A ledger that could not be asked about the key may be reached by a repeated begin. */
function withAdvice<T>(result: Result<T>, lease: string): Result<T> {
  if (result.ok || (result.refusal.code !== "UNAVAILABLE" && result.refusal.code !== "DEADLINE_EXCEEDED"))
    return result;
  return withFailure(result, { detail: `${result.refusal.detail}: ${BEGIN_ADVICE}`, leaseUuid: lease });
}

async function sendBegin(begin: BeginCall, request: BeginRequest): ReturnType<typeof askLedger<BeginAnswer>> {
  const { deployment, principal, params, body: batch, waitUntil } = begin;
  const { config, objects } = deployment;
  const { beginDeadlineMs, exchangeTimeoutMs } = config.limits;
  const ledger = () => objects.ledger(params.cell);
  const timeoutMs = (request.waitMs ?? 0) + beginDeadlineMs + exchangeTimeoutMs + 1_000;
  const { call, lease } = request;
  const signal = call === undefined ? undefined : begin.signal;
  // A begin that is granted when nobody waits for it any more would keep the names from others (B11).
  const giveUp = (): void => {
    if (call === undefined) return;
    const message = { ...deployment.envelope, lease, call };
    waitUntil(reach(exchangeTimeoutMs, { name: LEDGER }, () => ledger().giveUp(message)));
  };
  const { waitMs: _, ...withoutWait } = request;
  const sent = signal?.aborted === true ? withoutWait : request;
  signal?.addEventListener("abort", giveUp);
  const begun = await askLedger(principal, timeoutMs, () => ledger().begin(sent), BEGIN_ADVICE);
  signal?.removeEventListener("abort", giveUp);
  if (begun.ok) {
    const { value, headers } = begun.value;
    return ok({ value: { ...value, lease: withOps(value.lease, request) }, headers });
  }
  const { code, conflicts } = begun.refusal;
  if (conflicts !== undefined)
    return withFailure(begun, {
      buckets: conflicts.flatMap(({ list, index }) => batch[list]?.[index]?.bucket ?? []),
    });
  if (code === "UNAVAILABLE" || code === "DEADLINE_EXCEEDED")
    return withFailure(begun, { leaseUuid: request.lease });
  return begun;
}

/**
 * A ledger doesn't send back the ops of a lease that it has just granted, so they are taken from the request.
 */
const withOps = (lease: PlacedLease, { ops }: BeginRequest): PlacedLease =>
  lease.state === "GRANTED" ? { ops, ...lease } : lease;

const positionsOf = ({ positions }: PlacedLease): Pick<z.input<typeof placedLeaseAnswer>, "positions"> =>
  positions === undefined ? {} : { positions };

/** Returns a lease as the API shows it. Its types are in use, so a copy of any age that has them is right. */
async function shownLease(
  { types }: Deployment,
  lease: Lease,
): Promise<Result<ReturnType<typeof toApiLease>>> {
  const known = await types.forAnswer(storedTypes(lease.ops ?? []));
  return known.ok ? ok(toApiLease(known.value, lease)) : known;
}

interface Decided {
  status: 200;
  body: z.input<typeof placedLeaseAnswer>;
  headers: Record<string, string>;
}

async function decide(
  call: Call<(typeof leaseRoutes)["commitLease" | "rollbackLease"]>,
  outcome: Outcome,
): Promise<Result<Decided>> {
  const { deployment, principal, params, requestId, body, seen } = call;
  const fault = decisionFault(call);
  if (fault !== undefined) return fault;
  const request = {
    ...askerOf(deployment, principal, seen),
    requestId,
    lease: params.uuid,
    outcome,
    ...(body?.reason === undefined ? {} : { reason: body.reason }),
  };
  const { commitDeadlineMs } = deployment.config.limits;
  const work = () => deployment.objects.ledger(params.cell).decide(request);
  const advice = "repeat the call; the first decision wins and is final";
  const decided = await askLedger(principal, commitDeadlineMs, work, advice);
  if (!decided.ok) return decided;
  const { value, headers } = decided.value;
  return ok({ status: 200, body: { lease: toApiLease(NO_TYPES, value), ...positionsOf(value) }, headers });
}

/** Operators must give a reason, and cells must not (C5). */
function decisionFault({
  deployment,
  principal,
  body,
}: Call<(typeof leaseRoutes)["commitLease" | "rollbackLease"]>): Result<never> | undefined {
  const reason = body?.reason;
  if (principal.role !== "operator")
    return reason === undefined ? undefined : invalid("reason", "is only for operators; send no body");
  if (reason === undefined)
    return invalid("reason", "is required of operators; say why you decide this lease");
  return reasonFault(reason, deployment.config.limits);
}

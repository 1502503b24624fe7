import { v7 as newTimeOrderedUuid } from "uuid";
import type { KeyPayload } from "../../../auth/key.ts";
import type { Operator } from "../../../kernel/messages.ts";
import type { MintedKey } from "../messages.ts";
import { ok, refused, type Result } from "../../../kernel/refusal.ts";
import { invalid } from "../../../api/batch.ts";
import { keyRoutes } from "./routes.ts";
import type { WaitUntil } from "../../../runtime.ts";
import type { Deployment } from "../../../isolate/deployment.ts";
import type { Handlers } from "../../../api/handler.ts";
import { operatorOf, reasonFault } from "../../../api/operator.ts";
import { pageOf } from "../../../api/paging.ts";
import { DIRECTORY, LEDGER, reach, readTimeoutMs } from "../../../isolate/reach.ts";
import { toApiKey } from "../../../api/answers.ts";

/** The default lifetime: 90 days. It avoids weekly rotation, and a forgotten key still expires soon. */
const DEFAULT_LIFETIME_S = 90 * 86_400;

const keyHandlers: Handlers<typeof keyRoutes> = {
  async mintKey(call) {
    const { deployment, body } = call;
    const { role, cell_id: cell, expires_in_s: given, note, reason } = body;
    const { keyLifetimeS } = deployment.config.limits;
    if (role === "cell" && cell === undefined) return invalid("cell_id", "is required for the role `cell`");
    if (role !== "cell" && cell !== undefined)
      return invalid("cell_id", "is only allowed for the role `cell`; leave it out");
    const lifetimeS = given ?? Math.min(DEFAULT_LIFETIME_S, keyLifetimeS);
    if (lifetimeS > keyLifetimeS) return invalid("expires_in_s", `must be at most ${keyLifetimeS} seconds`);
    if (note === NOT_MADE_HERE)
      return invalid("note", "must be another text, because this one marks keys that were made offline");
    const fault = reasonFault(reason, deployment.config.limits);
    if (fault !== undefined) return fault;
    const signed = deployment.signed();
    if (!signed.ok) return signed;
    const iat = Math.floor(deployment.clock.now() / 1_000);
    const payload: KeyPayload = {
      v: 1,
      id: newTimeOrderedUuid(),
      role,
      ...(cell === undefined ? {} : { cell }),
      iat,
      exp: iat + lifetimeS,
    };
    const known: MintedKey = {
      keyId: payload.id,
      role,
      cell: cell ?? null,
      note: note ?? null,
      createdAtMs: iat * 1_000,
      expiresAtMs: payload.exp * 1_000,
      revokedAtMs: null,
    };
    const advice = "no key was returned; repeat the call";
    const operator = operatorOf(call, reason);
    const recorded = await reach(readTimeoutMs(deployment.config.limits), { name: DIRECTORY, advice }, () =>
      deployment.objects.directory().recordKey({ ...deployment.envelope, operator, key: known }),
    );
    if (!recorded.ok) return recorded;
    const { revoked_at: _, ...shown } = toApiKey(known);
    return ok({ status: 201, body: { ...shown, key: await signed.value.keys.make(payload) } });
  },

  async listKeys(call) {
    const page = await pageOf<number>(call);
    if (!page.ok) return page;
    const { limit, position, next } = page.value;
    const { deployment } = call;
    const message = { ...deployment.envelope, afterPosition: position ?? 0, limit };
    const listed = await reach(readTimeoutMs(deployment.config.limits), { name: DIRECTORY }, () =>
      deployment.objects.directory().listKeys(message),
    );
    if (!listed.ok) return listed;
    const { keys, more } = listed.value;
    return ok({
      status: 200,
      body: {
        keys: keys.map(toApiKey),
        next_page_token: await next(more ? keys.at(-1)?.position : undefined),
      },
    });
  },

  async revokeKey(call) {
    const { deployment, waitUntil, params, body } = call;
    const { id } = params;
    const fault = reasonFault(body?.reason, deployment.config.limits);
    if (fault !== undefined) return fault;
    const found = await reach(readTimeoutMs(deployment.config.limits), { name: DIRECTORY }, () =>
      deployment.objects.directory().keyToRevoke({ ...deployment.envelope, keyId: id }),
    );
    if (!found.ok) return found;
    const known = found.value ?? keyMadeElsewhere(deployment, id, body?.cell_id ?? null);
    // If the key was made offline, its cell is what a caller said. A later call may correct it, and tells
    // the ledger of that cell.
    const key =
      known.note === NOT_MADE_HERE && body?.cell_id !== undefined
        ? keyMadeElsewhere(deployment, id, body.cell_id)
        : known;
    if (body?.cell_id !== undefined && body.cell_id !== key.cell)
      return invalid("cell_id", "is not the cell of this key; leave it out or correct it");
    const revoked = await revoke(deployment, waitUntil, operatorOf(call, body?.reason), key);
    deployment.directory.expire();
    return revoked.ok ? ok({ status: 200, body: { key: toApiKey(revoked.value) } }) : revoked;
  },
};

/** The note of keys that were made offline and revoked here. */
const NOT_MADE_HERE = "not made here";

/** Ids of keys are UUIDs of version 7. All others are of certificates, of subjects and of users of Access. */
const KEY_ID = /^[\da-f]{8}-[\da-f]{4}-7/i;
/** The last time that RFC 3339 can represent. */
const NEVER_MS = Date.UTC(10_000, 0) - 1;

/**
 * The entry of a key that was made offline, or of a certificate or subject (A4). A key stays revoked for the
 * longest lifetime of a key, because its expiry is unknown. A subject can get a new token at any time, so it
 * stays revoked for good.
 */
function keyMadeElsewhere({ config, clock }: Deployment, keyId: string, cell: string | null): MintedKey {
  const now = clock.now();
  const expiresAtMs = KEY_ID.test(keyId) ? now + config.limits.keyLifetimeS * 1_000 : NEVER_MS;
  return {
    keyId,
    role: cell === null ? "operator" : "cell",
    cell,
    note: NOT_MADE_HERE,
    createdAtMs: now,
    expiresAtMs,
    revokedAtMs: null,
  };
}

/**
 * Revokes a key in its cell's ledger first, then in the directory. If the second step fails, the key is still
 * listed as valid and the call can be repeated. In the other order, a failure would list a key as revoked
 * that the ledger still accepts.
 */
async function revoke(
  deployment: Deployment,
  waitUntil: WaitUntil,
  operator: Operator,
  key: MintedKey,
): Promise<Result<MintedKey>> {
  const { objects, envelope } = deployment;
  const { cell } = key;
  const advice = "the key may still be valid; repeat the call";
  if (cell !== null) {
    // The first call of a ledger creates it, so none is called for a cell that is not registered.
    const registered = await deployment.directory.cell(cell, waitUntil);
    if (!registered.ok) return registered;
    // Isolates refuse a subject for good. Its ledger only has to refuse the tokens that it has by now, so
    // that the entries of a full ledger give way (A1).
    const latestMs = deployment.clock.now() + deployment.config.limits.keyLifetimeS * 1_000;
    const expiresAtMs = Math.min(key.expiresAtMs, latestMs);
    const message = { ...envelope, operator, keyId: key.keyId, expiresAtMs };
    const revokedByLedger = await reach(
      readTimeoutMs(deployment.config.limits),
      { name: LEDGER, advice },
      () => objects.ledger(cell).revoke(message),
    );
    if (!revokedByLedger.ok)
      return revokedByLedger.refusal.reason === "CELL_UNKNOWN"
        ? refused("NOT_FOUND", revokedByLedger.refusal.detail, { reason: "CELL_UNKNOWN" })
        : revokedByLedger;
  }
  const listed = await reach(readTimeoutMs(deployment.config.limits), { name: DIRECTORY, advice }, () =>
    objects.directory().revokeKey({ ...envelope, operator, key }),
  );
  // The directory's list of revoked keys became full after it was checked. The ledger already refuses the
  // key, so a plain refusal would be wrong: it would say that nothing was done.
  if (cell !== null && !listed.ok && listed.refusal.code === "RESOURCE_EXHAUSTED")
    return refused("UNAVAILABLE", listed.refusal.detail);
  return listed;
}

export { keyHandlers as handlers, keyRoutes as routes };

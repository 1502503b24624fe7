/** This code opens the states that each release has kept, and goes on with them. */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { v4 as newUuid } from "uuid";
import { describe, expect, onTestFinished, test } from "vitest";
import { Hmac } from "../../src/coordinator/auth/secrets.ts";
import { makeKey } from "../../src/coordinator/auth/key.ts";
import {
  openProgram,
  PROGRAMS,
  type Answer,
  type Opened,
  type Program,
} from "../../scripts/formats/state-program.ts";
import { bodyOf, claim, PARTS, scrub, STATE_SECRET, unpackState } from "../../scripts/formats/states.ts";

const formats = join(import.meta.dirname, "../../formats");
const HOUR_S = 3_600;

async function open(program: Program, state: string): Promise<Opened> {
  const opened = await openProgram(program, state);
  onTestFinished(() => opened.stop());
  return opened;
}

/** Keys of a state expire, but their ids stay. */
const viewerKey = (id: string): Promise<string> => {
  const iat = Math.floor(Date.now() / 1_000);
  return makeKey({ v: 1, id, role: "viewer", iat, exp: iat + HOUR_S }, new Hmac(STATE_SECRET));
};

/** Returns the claim of a name. Null: it has none. */
const claimOf = async ({ call }: Opened, type: string, value: string): Promise<unknown> => {
  const { status, body } = await call("router", "GET", `/v1/records/${type}/${value}`);
  return status === 404 ? null : body.record;
};

const owned = (cell: string): unknown => expect.objectContaining({ cell_id: cell, status: "ACTIVE" });

describe.each(readdirSync(formats))("a state of %s", (version) => {
  test.each(PROGRAMS)("of npm run %s has everything, and works", async (program) => {
    const state = mkdtempSync(join(tmpdir(), "leasehold-kept-"));
    onTestFinished(() => rmSync(state, { recursive: true, force: true }));
    const found = unpackState(join(formats, version), program, state);
    const { claims, released, rolledBack, openLease, keys, webhook, frozenCell, transfer, audit } = found;
    const opened = await open(program, state);
    const { call, callWith, cron } = opened;
    const read = async (path: string): Promise<Answer["body"]> =>
      bodyOf(await call("operator", "GET", path), 200);

    for (const { type, value, cell } of claims)
      expect(await claimOf(opened, type, value), value).toEqual(owned(cell));
    for (const { value } of [released, { value: rolledBack }])
      expect(await claimOf(opened, "ROUTES", value), value).toBeNull();
    expect(await read(`/v1/admin/history/ROUTES/${released.value}`)).toMatchObject({
      periods: [{ cell_id: released.cell, ended_by: { kind: "destroy" } }],
    });
    const { cell, uuid } = openLease;
    expect(await read("/v1/leases/stale")).toMatchObject({ leases: [{ cell_id: cell, uuid }] });
    expect(await read(`/v1/transfers/${transfer.id}`)).toMatchObject({
      transfer: { state: "PREPARED", accepted: { by: "to" } },
    });
    const described = (await read("/v1/admin/keys")).keys as { id: string; revoked_at: string | null }[];
    expect(described).toContainEqual(expect.objectContaining({ id: keys.valid, revoked_at: null }));
    const { webhooks } = await read("/v1/admin/webhooks");
    expect(webhooks).toMatchObject([{ id: webhook, enabled: true }]);
    expect(webhooks[0].failed_attempts).toBeGreaterThan(0);
    const cells = (await read("/v1/admin/cells")).cells as object[];
    expect(cells).toContainEqual(expect.objectContaining({ cell_id: frozenCell, state: "FROZEN" }));
    const actions = ((await read("/v1/admin/audit")).entries as { action: string }[]).map(
      ({ action }) => action,
    );
    expect(actions).toEqual(expect.arrayContaining(audit));
    for (const part of PARTS)
      expect((await read(`/v1/admin/parts/${part}/scrub`)).last, part).toMatchObject({ found: 0 });

    const statusWith = async (id: string): Promise<number> =>
      (await callWith(await viewerKey(id), "GET", "/v1/admin/cells")).status;
    expect([await statusWith(keys.valid), await statusWith(keys.revoked)]).toEqual([200, 401]);
    const reason = "an upgrade";
    bodyOf(await call("operator", "POST", `/v1/admin/keys/${keys.valid}/revoke`, { reason }), 200);
    await expect.poll(() => statusWith(keys.valid)).toBe(401);

    bodyOf(await call("1", "POST", `/v1/cells/${cell}/leases/${uuid}/commit`), 200);
    const lease = `/v1/cells/2/leases/${newUuid()}`;
    const batch = { creates: [claim("VOUCHERS", "Winter-8"), claim("ROUTES", released.value)] };
    bodyOf(await call("2", "PUT", lease, batch), 201);
    bodyOf(await call("2", "POST", `${lease}/commit`), 200);
    const { expected } = (await read(`/v1/transfers/${transfer.id}`)).transfer;
    bodyOf(await call("1", "POST", `/v1/transfers/${transfer.id}/report`, expected.from), 200);
    bodyOf(await call("2", "POST", `/v1/transfers/${transfer.id}/report`, expected.to), 200);
    bodyOf(await call("1", "POST", `/v1/transfers/${transfer.id}/cut`), 200);
    bodyOf(await call("operator", "POST", `/v1/admin/cells/${frozenCell}/unfreeze`, { reason }), 200);
    await cron();
    await opened.stop();

    const again = await open(program, state);
    for (const [type, value, owner] of [
      ...claims.map((each) => [each.type, each.value, each.cell] as const),
      ["ROUTES", openLease.value, cell],
      ["VOUCHERS", "Winter-8", "2"],
      ["ROUTES", released.value, "2"],
      ["USERNAMES", transfer.value, "2"],
    ] as const)
      expect(await claimOf(again, type, value), value).toEqual(owned(owner));
    for (const part of PARTS)
      expect(await scrub(again, part), part).toMatchObject({ found: 0, unchecked: 0 });
  });
});

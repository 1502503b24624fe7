/** Tests of the keys that a ledger knows to be revoked (A1). */
import { expect, test } from "vitest";
import { isPrepare, no, ok } from "../../../support/calls.ts";
import type { Limits } from "../../../../src/common/limits.ts";
import type { BeginRequest } from "../../../../src/coordinator/kernel/messages.ts";
import { Cluster } from "../../../support/cluster.ts";
import { beginRequest } from "../../../support/ops.ts";

const start = (limits: Partial<Limits> = {}): Promise<Cluster> => Cluster.start({ shards: 1, limits });
const begin = (c: Cluster, lease: string, names: string[], more: Partial<BeginRequest> = {}) =>
  c.clock.runUntil(c.ledger("1").object.begin(beginRequest(c.envelope, lease, names, more)));

test("[A1] the ledger does not check an operator's key, whatever its id", async () => {
  const c = await start();
  const { object } = c.ledger("1");
  await begin(c, c.uuid(), ["ada"]);
  await c.clock.runUntil(object.revoke({ ...c.envelope, keyId: "k1", expiresAtMs: Number.MAX_SAFE_INTEGER }));
  const operator = { role: "operator", keyId: "k1", expiresAtMs: Number.MAX_SAFE_INTEGER } as const;
  expect(await c.clock.runUntil(object.authorize({ ...c.envelope, caller: operator }))).toEqual({
    ok: true,
    value: null,
  });
  expect(await begin(c, c.uuid(), ["bob"], { caller: operator })).toEqual(ok({ created: true }));
  expect(c.holds().map(({ canonical }) => canonical)).toEqual(["ada", "bob"]);
});

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const revoke = (c: Cluster, keyId: string, expiresAtMs: number) =>
  c.clock.runUntil(c.ledger("1").object.revoke({ ...c.envelope, keyId, expiresAtMs }));
const authorize = async (c: Cluster, keyId: string, expiresAtMs: number): Promise<unknown> => {
  const caller = { role: "cell" as const, keyId, expiresAtMs };
  const answer = await c.clock.runUntil(c.ledger("1").object.authorize({ ...c.envelope, caller }));
  return answer.ok ? "ok" : answer.refusal.reason;
};

test("[A1] [M4] a revoked key stays revoked when the clock was ahead for some time", async () => {
  const c = await start();
  const expiresAtMs = c.clock.now() + DAY_MS;
  await revoke(c, "k1", expiresAtMs);
  c.clock.jump(25 * HOUR_MS);
  await revoke(c, "k2", c.clock.now() + DAY_MS);
  c.clock.jump(-25 * HOUR_MS);
  expect(await authorize(c, "k1", expiresAtMs)).toBe("KEY_REVOKED");
  c.ledger("1").restart();
  expect(await authorize(c, "k1", expiresAtMs)).toBe("KEY_REVOKED");
  expect(await authorize(c, "k3", expiresAtMs)).toBe("ok");
});

test("[A1] [M6] the revoked key that expires first makes room, and no key that old is valid", async () => {
  const c = await start({ maxRevokedKeys: 2 });
  const at = (hours: number): number => c.clock.now() + hours * HOUR_MS;
  const [one, two, three, four] = [at(1), at(2), at(3), at(4)];
  await revoke(c, "k2", two);
  await revoke(c, "k2", two);
  await revoke(c, "k4", four);
  await revoke(c, "k3", three);
  for (const restarted of [false, true]) {
    if (restarted) c.ledger("1").restart();
    // The ledger has forgotten k2, so every key that expires no later counts as expired.
    expect(await authorize(c, "k2", two)).toBe("KEY_EXPIRED");
    expect(await authorize(c, "other", one)).toBe("KEY_EXPIRED");
    expect(await authorize(c, "other", two + 1)).toBe("ok");
    expect(await authorize(c, "k3", three)).toBe("KEY_REVOKED");
    expect(await authorize(c, "k4", four)).toBe("KEY_REVOKED");
  }
  expect(c.ledger("1").database.prepare("SELECT key_id FROM revoked_key").all()).toHaveLength(2);
});

test("[A1] a begin with a key that expires too early is neither started nor granted", async () => {
  const c = await start({ maxRevokedKeys: 1 });
  const soon = c.clock.now() + HOUR_MS;
  const caller = { role: "cell" as const, keyId: "k", expiresAtMs: soon };
  const running = c.ledger("1").object.begin(beginRequest(c.envelope, c.uuid(), ["ada"], { caller }));
  await revoke(c, "k1", soon);
  const release = c.ledger("1").sql.holdFlushes();
  const revoking = c.ledger("1").object.revoke({ ...c.envelope, keyId: "k2", expiresAtMs: soon + 1 });
  release();
  await c.clock.runUntil(Promise.all([running, revoking]));
  expect(await begin(c, c.uuid(), ["bob"], { caller })).toEqual(
    no("UNAUTHENTICATED", { reason: "KEY_EXPIRED" }),
  );
});

test("[B2] [A1] a caller that joins a begin is not told of the first caller's revoked key", async () => {
  const c = await Cluster.start({ shards: 1 });
  await begin(c, c.uuid(), ["warm-up"]);
  c.fate = (call) => (isPrepare(call) ? "slow" : "deliver");
  const lease = c.uuid();
  const first = begin(c, lease, ["ada"]);
  await c.clock.pass(10);
  const again = () =>
    c.ledger("1").object.begin(
      beginRequest(c.envelope, lease, ["ada"], {
        caller: { role: "cell", keyId: "k2", expiresAtMs: Number.MAX_SAFE_INTEGER },
      }),
    );
  const second = again();
  await c.clock.runUntil(
    c.ledger("1").object.revoke({ ...c.envelope, keyId: "k1", expiresAtMs: Number.MAX_SAFE_INTEGER }),
  );
  expect(await c.clock.runUntil(first)).toEqual(no("UNAUTHENTICATED", { reason: "KEY_REVOKED" }));
  expect(await c.clock.runUntil(second)).toEqual(no("UNAVAILABLE", { retryAfterMs: 1_000 }));
  expect(await c.clock.runUntil(again())).toEqual(ok({ created: true }));
});

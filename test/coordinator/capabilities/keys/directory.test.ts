/** Tests of the keys in the directory (A1). */
import { expect, test } from "vitest";
import type { MintedKey } from "../../../../src/coordinator/capabilities/keys/messages.ts";
import { Cluster } from "../../../support/cluster.ts";

const ok = (value: unknown): object => ({ ok: true, value });
const no = (code: string, more: object = {}): object => ({
  ok: false,
  refusal: expect.objectContaining({ code, ...more }) as unknown,
});

const HOUR_MS = 3_600_000;

function keyOf(c: Cluster, keyId: string, more: Partial<MintedKey> = {}): MintedKey {
  const now = c.clock.now();
  return {
    keyId,
    role: "cell",
    cell: "1",
    note: null,
    createdAtMs: now,
    expiresAtMs: now + HOUR_MS,
    revokedAtMs: null,
    ...more,
  };
}

const record = (c: Cluster, key: MintedKey) =>
  c.clock.runUntil(c.directory.object.recordKey({ ...c.envelope, key }));
const revoke = (c: Cluster, key: MintedKey) =>
  c.clock.runUntil(c.directory.object.revokeKey({ ...c.envelope, key }));
const find = (c: Cluster, keyId: string) =>
  c.clock.runUntil(c.directory.object.keyToRevoke({ ...c.envelope, keyId }));
const snapshot = (c: Cluster) => c.clock.runUntil(c.directory.object.snapshot(c.envelope));

async function revokedKeys(c: Cluster): Promise<string[]> {
  const answer = await snapshot(c);
  return answer.ok ? answer.value.revokedKeys.toSorted() : [];
}

test("a key is stored for a registered cell or for none, and read back unchanged", async () => {
  const c = await Cluster.start({ cells: ["1"] });
  const [ofCell, ofNone] = [
    keyOf(c, "k1", { note: "first" }),
    keyOf(c, "k2", { role: "operator", cell: null }),
  ];
  expect(await record(c, ofCell)).toEqual(ok(ofCell));
  expect(await record(c, ofNone)).toEqual(ok(ofNone));
  expect(await record(c, keyOf(c, "k3", { cell: "3" }))).toEqual(no("NOT_FOUND", { reason: "CELL_UNKNOWN" }));
  expect(await find(c, "k1")).toEqual(ok(expect.objectContaining(ofCell)));
  expect(await find(c, "k2")).toEqual(ok(expect.objectContaining(ofNone)));
  expect(await find(c, "k3")).toEqual(ok(null));
});

test("keys are listed in the order of their last change, and no page misses one", async () => {
  const c = await Cluster.start();
  for (const keyId of ["a", "b", "c"]) await record(c, keyOf(c, keyId));
  await revoke(c, keyOf(c, "a"));
  const page = async (afterPosition: number, limit: number) => {
    const answer = await c.clock.runUntil(
      c.directory.object.listKeys({ ...c.envelope, afterPosition, limit }),
    );
    if (!answer.ok) throw new Error(answer.refusal.detail);
    return {
      ids: answer.value.keys.map(({ keyId }) => keyId),
      last: answer.value.keys.at(-1)?.position ?? 0,
      more: answer.value.more,
    };
  };
  const first = await page(0, 2);
  expect(first).toMatchObject({ ids: ["b", "c"], more: true });
  expect(await page(first.last, 2)).toMatchObject({ ids: ["a"], more: false });
  expect(await page(0, 3)).toMatchObject({ ids: ["b", "c", "a"], more: false });
});

test("[A1] a revoked key keeps its first revocation time, and is in snapshots from then on", async () => {
  const c = await Cluster.start();
  const key = keyOf(c, "k1");
  await record(c, key);
  await record(c, keyOf(c, "k2"));
  const revokedAtMs = c.clock.now();
  expect(await revoke(c, key)).toEqual(ok(expect.objectContaining({ keyId: "k1", revokedAtMs })));
  c.clock.jump(1_000);
  expect(await revoke(c, key)).toEqual(ok(expect.objectContaining({ keyId: "k1", revokedAtMs })));
  expect(await revokedKeys(c)).toEqual(["k1"]);
});

test("[A1] [M4] no clock removes a revoked key from snapshots", async () => {
  const c = await Cluster.start();
  await revoke(c, keyOf(c, "k1"));
  for (const ms of [25 * HOUR_MS, -50 * HOUR_MS]) {
    c.clock.jump(ms);
    expect(await snapshot(c)).toMatchObject({ value: { revokedKeys: ["k1"], revokedThroughMs: 0 } });
  }
});

test("[A1] [M6] a snapshot lists the revoked keys that expire last, and tells what it left out", async () => {
  const c = await Cluster.start({ limits: { maxRevokedKeys: 2 } });
  const expiries = [1, 2, 3, 4].map((hours) => c.clock.now() + hours * HOUR_MS);
  for (const [index, expiresAtMs] of expiries.entries()) {
    await revoke(c, keyOf(c, `k${index + 1}`, { expiresAtMs }));
    c.clock.jump(HOUR_MS);
  }
  const value = { revokedKeys: ["k4", "k3"], revokedThroughMs: expiries[1] };
  expect(await snapshot(c)).toMatchObject({ ok: true, value });
});

test("[A1] a key minted elsewhere can be revoked, and its cell corrected later; the time stays", async () => {
  const c = await Cluster.start();
  const revokedAtMs = c.clock.now();
  await revoke(c, keyOf(c, "elsewhere", { cell: "2" }));
  c.clock.jump(5_000);
  expect(await revoke(c, keyOf(c, "elsewhere", { cell: "1" }))).toEqual(
    ok(expect.objectContaining({ cell: "1", revokedAtMs })),
  );
  expect(await find(c, "elsewhere")).toEqual(ok(expect.objectContaining({ cell: "1", revokedAtMs })));
  // The same call again makes no change, so that a pull by position has nothing new.
  const position = async () => {
    const answer = await c.clock.runUntil(
      c.directory.object.listKeys({ ...c.envelope, afterPosition: 0, limit: 1 }),
    );
    return answer.ok ? answer.value.keys[0]?.position : undefined;
  };
  const before = await position();
  await revoke(c, keyOf(c, "elsewhere", { cell: "1" }));
  expect(await position()).toBe(before);
});

test("[M6] [A1] unexpired revoked keys are limited; correcting one needs no room", async () => {
  const c = await Cluster.start({ limits: { maxRevokedKeys: 1 } });
  for (const keyId of ["a", "b"]) await record(c, keyOf(c, keyId));
  expect(await revoke(c, keyOf(c, "a"))).toMatchObject({ ok: true });
  expect(await find(c, "a")).toMatchObject({ ok: true });
  for (const keyId of ["b", "unknown"]) {
    expect(await find(c, keyId)).toEqual(no("RESOURCE_EXHAUSTED"));
    expect(await revoke(c, keyOf(c, keyId))).toEqual(no("RESOURCE_EXHAUSTED"));
  }
  expect(await revoke(c, keyOf(c, "a", { cell: "2" }))).toEqual(ok(expect.objectContaining({ cell: "2" })));
  expect(await revokedKeys(c)).toEqual(["a"]);
  c.clock.jump(HOUR_MS);
  expect(await revoke(c, keyOf(c, "b", { expiresAtMs: c.clock.now() + 1 }))).toMatchObject({ ok: true });
});

test("[A1] a revoked key stays revoked if the message that recorded it arrives again", async () => {
  const c = await Cluster.start({ cells: ["1"] });
  const key = keyOf(c, "k1");
  await record(c, key);
  await revoke(c, key);
  expect(await record(c, key)).toMatchObject({ ok: true });
  expect(await revokedKeys(c)).toEqual(["k1"]);
});

test("[M6] [A1] keys are limited; expired ones make room, first those that were never revoked", async () => {
  const c = await Cluster.start({ limits: { maxKeys: 4 } });
  const now = c.clock.now();
  const listed = async () => {
    const answer = await c.clock.runUntil(
      c.directory.object.listKeys({ ...c.envelope, afterPosition: 0, limit: 100 }),
    );
    return answer.ok ? answer.value.keys.map(({ keyId }) => keyId) : [];
  };
  const through = async () => {
    const answer = await c.clock.runUntil(c.directory.object.snapshot(c.envelope));
    return answer.ok ? answer.value.revokedThroughMs : undefined;
  };
  await record(c, keyOf(c, "revoked", { expiresAtMs: now + 1_000 }));
  await revoke(c, keyOf(c, "revoked", { expiresAtMs: now + 1_000 }));
  for (const keyId of ["a", "b", "c"]) await record(c, keyOf(c, keyId, { expiresAtMs: now + 2_000 }));
  const later = (keyId: string) => keyOf(c, keyId, { expiresAtMs: now + HOUR_MS });
  expect(await record(c, later("d"))).toEqual(no("RESOURCE_EXHAUSTED"));
  expect(await find(c, "elsewhere")).toEqual(no("RESOURCE_EXHAUSTED"));
  expect(await revoke(c, later("elsewhere"))).toEqual(no("RESOURCE_EXHAUSTED"));
  // A key that is described already needs no room.
  expect(await record(c, keyOf(c, "a"))).toMatchObject({ ok: true });
  c.clock.jump(5_000);
  for (const keyId of ["d", "e", "f"]) expect(await record(c, later(keyId))).toMatchObject({ ok: true });
  expect(await listed()).toEqual(["revoked", "d", "e", "f"]);
  expect(await through()).toBe(0);
  expect(await revoke(c, later("g"))).toMatchObject({ ok: true });
  expect(await listed()).toEqual(["d", "e", "f", "g"]);
  // What was forgotten stays refused.
  expect(await through()).toBe(now + 1_000);
  expect(await record(c, later("h"))).toEqual(no("RESOURCE_EXHAUSTED"));
});

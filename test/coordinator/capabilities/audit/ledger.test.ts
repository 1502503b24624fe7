/** Tests of what a ledger remembers of its operators' changes. */
import { expect, test } from "vitest";
import type { AuditEntry } from "../../../../src/coordinator/capabilities/audit/audit.ts";
import type {
  Operator,
  BeginRequest,
  Caller,
  DecideRequest,
} from "../../../../src/coordinator/kernel/messages.ts";
import type { SettableState } from "../../../../src/coordinator/capabilities/cells/messages.ts";
import { Cluster } from "../../../support/cluster.ts";
import { beginRequest, decideRequest } from "../../../support/ops.ts";

const EVER = Number.MAX_SAFE_INTEGER;
const ada: Operator = { keyId: "ada", requestId: "request-7", reason: "a test" };
const byAda: Caller = { role: "operator", keyId: "ada", expiresAtMs: EVER };

const ledger = (c: Cluster) => c.ledger("1").object;

const begin = (c: Cluster, lease: string, name: string, more: Partial<BeginRequest> = {}) =>
  c.clock.runUntil(ledger(c).begin(beginRequest(c.envelope, lease, [name], more)));
const decide = (
  c: Cluster,
  lease: string,
  outcome: "COMMITTED" | "ROLLED_BACK",
  more: Partial<DecideRequest> = {},
) => c.clock.runUntil(ledger(c).decide(decideRequest(c.envelope, lease, outcome, more)));
const byOperator = { caller: byAda, requestId: "request-7", reason: "a test" };

async function setState(c: Cluster, state: SettableState) {
  const status = await c.clock.runUntil(ledger(c).status(c.envelope));
  const stateVersion = status.ok ? status.value.stateVersion : 0;
  return c.clock.runUntil(ledger(c).setState({ ...c.envelope, operator: ada, state, stateVersion }));
}

const revoke = (c: Cluster, keyId: string, expiresAtMs = EVER) =>
  c.clock.runUntil(ledger(c).revoke({ ...c.envelope, operator: ada, keyId, expiresAtMs }));

const pull = (c: Cluster, copied: string | null = null) =>
  c.clock.runUntil(ledger(c).pullAudit({ ...c.envelope, copied, limit: 100 }));

async function entriesOf(c: Cluster): Promise<AuditEntry[]> {
  const answer = await pull(c);
  if (!answer.ok) throw new Error(answer.refusal.detail);
  return answer.value.entries;
}

const shown = (entries: AuditEntry[]) =>
  entries.map(({ action, target, before, after }) => [
    action,
    target,
    before === null ? null : (JSON.parse(before) as { state?: string }).state,
    after === null ? null : (JSON.parse(after) as { state?: string }).state,
  ]);

test("[O2] the cron gets only entries that are durable", async () => {
  const c = await Cluster.start();
  await pull(c);
  const release = c.ledger("1").sql.holdFlushes();
  let answer: Awaited<ReturnType<typeof pull>> | undefined;
  void ledger(c)
    .pullAudit({ ...c.envelope, copied: null, limit: 100 })
    .then((given) => (answer = given));
  const revoked = ledger(c).revoke({ ...c.envelope, operator: ada, keyId: "a key", expiresAtMs: EVER });
  await c.pass(10);
  expect(answer).toBeUndefined();
  release();
  await c.clock.runUntil(revoked);
  expect(answer).toMatchObject({ ok: true, value: { entries: [] } });
});

test("[O1] an operator's begin and decision have an entry, and the lease names the key", async () => {
  const c = await Cluster.start();
  await begin(c, c.uuid(), "a cell's own");
  const [mine, rolledBack, unknown] = [c.uuid(), c.uuid(), c.uuid()];
  await begin(c, mine, "a", { caller: byAda, requestId: "request-7" });
  await begin(c, rolledBack, "b");
  const committed = await decide(c, mine, "COMMITTED", byOperator);
  expect(committed).toMatchObject({ ok: true, value: { decidedBy: "operator", decidedByKey: "ada" } });
  await decide(c, rolledBack, "ROLLED_BACK", byOperator);
  expect(await decide(c, unknown, "ROLLED_BACK", byOperator)).toMatchObject({
    ok: true,
    value: { decidedByKey: "ada" },
  });
  const entries = await entriesOf(c);
  expect(shown(entries)).toEqual([
    ["begin_lease", mine, null, "GRANTED"],
    ["commit_lease", mine, "GRANTED", "COMMITTED"],
    ["rollback_lease", rolledBack, "GRANTED", "ROLLED_BACK"],
    ["rollback_lease", unknown, null, "ROLLED_BACK"],
  ]);
  for (const { keyId, requestId, cell } of entries)
    expect([keyId, requestId, cell]).toEqual(["ada", "request-7", "1"]);
  expect(entries.map(({ reason }) => reason)).toEqual([null, "a test", "a test", "a test"]);
  expect(JSON.parse(entries[0]?.after ?? "")).toMatchObject({ creates: 1, destroys: 0, replaces: 0 });
});

test("[O1] a cell's own decisions, repeated ones and refused ones have no entry", async () => {
  const c = await Cluster.start();
  const [own, decided] = [c.uuid(), c.uuid()];
  await begin(c, own, "a");
  expect(await decide(c, own, "COMMITTED")).toMatchObject({ ok: true, value: { decidedBy: "cell" } });
  const read = await c.clock.runUntil(ledger(c).getLease({ ...c.envelope, caller: byAda, lease: own }));
  expect(read).toMatchObject({ ok: true, value: expect.not.objectContaining({ decidedByKey: "k1" }) });
  expect(await entriesOf(c)).toEqual([]);

  await begin(c, decided, "b", { caller: byAda });
  await decide(c, decided, "COMMITTED", byOperator);
  const before = await entriesOf(c);
  await begin(c, decided, "b", { caller: byAda });
  await begin(c, c.uuid(), "b", { caller: byAda });
  await decide(c, decided, "COMMITTED", byOperator);
  await decide(c, decided, "ROLLED_BACK", byOperator);
  await decide(c, c.uuid(), "COMMITTED", byOperator);
  expect(await entriesOf(c)).toEqual(before);
});

test("[O1] freezing, unfreezing and revoking have an entry if they change something", async () => {
  const c = await Cluster.start();
  await setState(c, "ACTIVE");
  await setState(c, "FROZEN");
  await setState(c, "FROZEN");
  await setState(c, "ACTIVE");
  await revoke(c, "k9");
  await revoke(c, "k9");
  const entries = await entriesOf(c);
  expect(shown(entries)).toEqual([
    ["freeze_cell", "1", "ACTIVE", "FROZEN"],
    ["unfreeze_cell", "1", "FROZEN", "ACTIVE"],
    ["revoke_key", "k9", undefined, undefined],
  ]);
  for (const { keyId, reason } of entries) expect([keyId, reason]).toEqual(["ada", "a test"]);
});

test("[O1] a key that the ledger already refuses without knowing it has no second entry", async () => {
  const c = await Cluster.start({ limits: { maxRevokedKeys: 1 } });
  await revoke(c, "long", 9_000);
  await revoke(c, "short", 5_000);
  await revoke(c, "short", 5_000);
  expect((await entriesOf(c)).map(({ target }) => target)).toEqual(["long", "short"]);
});

test.each(["INSERT ON audit", "UPDATE ON lease"])(
  "[O1] [C1] if the disk fails at the %s, an operator's decision is not made",
  async (write) => {
    const c = await Cluster.start();
    const lease = c.uuid();
    await begin(c, lease, "a");
    const { database } = c.ledger("1");
    database.exec(`CREATE TRIGGER fails BEFORE ${write} BEGIN SELECT RAISE(ABORT, 'the disk fails'); END`);
    await expect(decide(c, lease, "ROLLED_BACK", byOperator)).rejects.toThrow("the disk fails");
    database.exec("DROP TRIGGER fails");
    c.ledger("1").restart();
    expect(await entriesOf(c)).toEqual([]);
    expect(await decide(c, lease, "COMMITTED")).toMatchObject({ ok: true, value: { state: "COMMITTED" } });
  },
);

test("[O2] entries are dropped once they were copied, and the cron learns how many are left", async () => {
  const c = await Cluster.start();
  await revoke(c, "k8");
  await revoke(c, "k9");
  const count = async () => {
    const answer = await c.clock.runUntil(ledger(c).maintain({ ...c.envelope }));
    return answer.ok ? answer.value.auditEntries : undefined;
  };
  expect(await count()).toBe(2);
  const copied = (await entriesOf(c)).at(-1)?.id ?? "";
  await revoke(c, "k10");
  expect(await pull(c, copied)).toMatchObject({ ok: true, value: { entries: [{ target: "k10" }] } });
  expect(await count()).toBe(1);
});

test("[O3] [C6] without room, an operator changes nothing, and the cell goes on", async () => {
  const c = await Cluster.start({ limits: { auditEntries: 1 } });
  const lease = c.uuid();
  await begin(c, lease, "a");
  await revoke(c, "k9");
  const full = { ok: false, refusal: { code: "UNAVAILABLE", reason: "AUDIT_FULL" } };
  expect(await decide(c, lease, "ROLLED_BACK", byOperator)).toMatchObject(full);
  expect(await decide(c, c.uuid(), "ROLLED_BACK", byOperator)).toMatchObject(full);
  expect(await begin(c, c.uuid(), "b", { caller: byAda })).toMatchObject(full);
  expect(await setState(c, "FROZEN")).toMatchObject(full);
  expect(await revoke(c, "k8")).toMatchObject(full);
  expect(await begin(c, c.uuid(), "b")).toMatchObject({ ok: true });
  expect(await decide(c, lease, "COMMITTED")).toMatchObject({ ok: true });
  // The same decision again changes nothing, so it needs no entry.
  expect(await decide(c, lease, "COMMITTED", byOperator)).toMatchObject({ ok: true });

  const copied = (await entriesOf(c)).at(-1)?.id ?? "";
  await pull(c, copied);
  expect(await setState(c, "FROZEN")).toMatchObject({ ok: true });
});

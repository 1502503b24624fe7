/** Tests of parts whose storage goes back to an earlier state (H1 to H5, L7). */
import { HOLDS } from "../../../support/holds.ts";
import { describe, expect, test } from "vitest";
import type {
  CellStatus,
  Exchange,
  HistoryPoint,
  Question,
} from "../../../../src/coordinator/kernel/messages.ts";
import { ok } from "../../../../src/coordinator/kernel/refusal.ts";
import { no } from "../../../support/calls.ts";
import { Cluster } from "../../../support/cluster.ts";
import { begin, decide, LOST, own, saveLedger, saveShard } from "../../../support/go-back.ts";
import { beginRequest, decideRequest, exchangeOf, keyOf, operator, opsOf } from "../../../support/ops.ts";

async function statusOf(c: Cluster): Promise<CellStatus> {
  const status = await c.clock.runUntil(c.ledger("1").object.status(c.envelope));
  if (!status.ok) throw new Error(status.refusal.detail);
  return status.value;
}

const versionOf = async (c: Cluster): Promise<number> => (await statusOf(c)).stateVersion;

const lookup = (c: Cluster, name: string) =>
  c.clock.runUntil(c.shard(0).object.lookup({ ...c.envelope, keys: [keyOf("ROUTES", name)] }));

/** The refusal of an instance that finds that another one has replaced it (B8). */
const REPLACED = no("UNAVAILABLE", { retryAfterMs: 1_000 });

/** A ledger has 1,024 positions for each millisecond. */
const DAY_POSITIONS = 86_400_000 * 1_024;

const events = (c: Cluster) => c.logged.filter(({ event }) => event === "history_lost");

describe("a shard that went back in time", () => {
  test("[H2] [H4] refuses the first message of a ledger that knows more, and all later ones", async () => {
    const c = await Cluster.start({ shards: 1 });
    await own(c, "1", "early");
    const restore = saveShard(c);
    await own(c, "1", "late");
    restore();
    // Cell 1 has seen the claim that is gone, so its next begin is refused.
    expect(await begin(c, "1", c.uuid(), ["other"])).toEqual(LOST);
    expect(await begin(c, "2", c.uuid(), ["late"])).toEqual(LOST);
    expect(await lookup(c, "early")).toEqual(LOST);
    expect(await c.clock.runUntil(c.shard(0).object.ping(c.envelope))).toEqual(LOST);
    expect(events(c)).toHaveLength(1);
    expect(events(c)[0]?.fields).toMatchObject({ part: "shard 0", noticed_by: "the ledger of cell 1" });
    // It still refuses after a restart.
    c.shard(0).restart();
    expect(await lookup(c, "early")).toEqual(LOST);
    expect(c.claims()).toHaveLength(1);
  });

  test("[H4] says so in its metrics", async () => {
    const c = await Cluster.start({ shards: 1 });
    await begin(c, "1", c.uuid(), ["a"]);
    const metrics = () => c.clock.runUntil(c.shard(0).object.metrics(c.envelope));
    expect(await metrics()).toMatchObject({ value: { state: "complete" } });
    const seen = { incarnation: 2 ** 40, position: 1 };
    await c.clock.runUntil(c.shard(0).object.ping({ ...c.envelope, seen }));
    expect(await metrics()).toMatchObject({ value: { state: "lost" } });
  });

  test("[H3] is noticed by a ledger that was restarted after its grant", async () => {
    const c = await Cluster.start({ shards: 1 });
    await own(c, "1", "early");
    const restore = saveShard(c);
    await begin(c, "1", c.uuid(), ["late"]);
    restore();
    c.ledger("1").restart();
    expect(await begin(c, "1", c.uuid(), ["other"])).toEqual(LOST);
  });

  test("[H3] is noticed by what a ledger stored when it stopped repeating its decisions", async () => {
    const c = await Cluster.start({ shards: 1 });
    const lease = c.uuid();
    await begin(c, "1", lease, ["late"]);
    const restore = saveShard(c);
    await decide(c, "1", lease, "COMMITTED");
    await c.pass(30_000);
    restore();
    c.ledger("1").restart();
    expect(await begin(c, "1", c.uuid(), ["other"])).toEqual(LOST);
  });

  test("[C2] [H3] is repaired instead, if its ledger still repeats all that it lost", async () => {
    const c = await Cluster.start({ shards: 1 });
    const lease = c.uuid();
    await begin(c, "1", lease, ["late"]);
    const restore = saveShard(c);
    await decide(c, "1", lease, "COMMITTED");
    restore();
    // The new instance has not stored what it saw of the shard, but it sends the decision again.
    c.ledger("1").restart();
    await begin(c, "1", c.uuid(), ["other"]);
    await c.pass(30_000);
    expect(events(c)).toEqual([]);
    expect(c.claims()).toMatchObject([{ canonical: "late" }]);
  });

  test("[H1] is noticed although another cell's begins have raised its position again", async () => {
    const c = await Cluster.start({ shards: 1 });
    await own(c, "2", "early");
    const restore = saveShard(c);
    await own(c, "1", "late");
    restore();
    for (let n = 0; n < 20; n += 1) await own(c, "2", `more-${n}`);
    expect(await begin(c, "1", c.uuid(), ["other"])).toEqual(LOST);
  });

  test("[H5] does not make a ledger forget by what somebody else has seen of it since", async () => {
    const c = await Cluster.start({ shards: 1 });
    await own(c, "1", "early");
    const restore = saveShard(c);
    await own(c, "1", "late");
    restore();
    await own(c, "2", "more");
    c.shard(0).restart();
    await own(c, "2", "even-more");
    const { point } = c.shard(0).object.told();
    const begun = c
      .ledger("1")
      .object.begin(
        beginRequest(c.envelope, c.uuid(), ["other"], point === undefined ? {} : { shards: { 0: point } }),
      );
    expect(point).toBeDefined();
    expect(await c.clock.runUntil(begun)).toEqual(LOST);
  });

  test("[H4] [M1] grants nothing that waited for its transaction when the loss was noticed", async () => {
    const c = await Cluster.start({ shards: 1 });
    await own(c, "1", "early");
    const restore = saveShard(c);
    await own(c, "1", "late");
    const { point } = c.shard(0).object.told();
    restore();
    await own(c, "2", "more");
    const ops = opsOf(c.envelope.placement, ["late"]);
    const prepare = { cell: "2", lease: c.uuid(), incarnation: 1, counter: 1, ops, allowMissing: false };
    const exchanged = c.shard(0).object.exchange(exchangeOf(c.envelope, "2", { prepares: [prepare] }));
    const told = c.shard(0).object.ping({ ...c.envelope, ...(point === undefined ? {} : { seen: point }) });
    expect(await c.clock.runUntil(Promise.all([exchanged, told]))).toEqual([LOST, LOST]);
    expect(c.holds()).toEqual([]);
  });

  test("[H4] stores the loss before it answers that it has noticed it", async () => {
    const c = await Cluster.start({ shards: 1 });
    await own(c, "1", "early");
    for (const part of [c.shard(0), c.ledger("1")]) {
      const lift = part.sql.holdFlushes();
      const seen = { incarnation: 2 ** 40, position: 1 };
      let hasAnswered = false;
      const message = { ...c.envelope, seen };
      const asked = "ping" in part.object ? part.object.ping(message) : part.object.maintain(message);
      void asked.then(() => (hasAnswered = true));
      // Meanwhile, an operator reads the part.
      const reading = part.object.part(c.envelope);
      let wasRead = false;
      void reading.then(() => (wasRead = true));
      await c.clock.pass(50);
      expect([hasAnswered, wasRead]).toEqual([false, false]);
      lift();
      expect(await c.clock.runUntil<unknown>(asked)).toEqual(LOST);
      expect(await c.clock.runUntil<unknown>(reading)).toMatchObject({ value: { state: "lost" } });
    }
  });

  test("[H4] is noticed when all of its data is gone", async () => {
    const c = await Cluster.start({ shards: 1 });
    const restore = saveShard(c);
    await own(c, "1", "late");
    restore();
    expect(await begin(c, "1", c.uuid(), ["other"])).toEqual(LOST);
  });

  test("[H4] clears no holds", async () => {
    const c = await Cluster.start({ shards: 1 });
    await begin(c, "1", c.uuid(), ["held"]);
    const restore = saveShard(c);
    await own(c, "1", "late");
    restore();
    await begin(c, "1", c.uuid(), ["other"]);
    const before = c.messages("inquire").length;
    await c.pass(60_000);
    expect(c.messages("inquire")).toHaveLength(before);
    expect(c.holds()).toHaveLength(1);
  });
});

describe("a ledger that went back in time", () => {
  test("[H4] [C3] ends its alarms, and delivers its decisions after its loss was accepted", async () => {
    const c = await Cluster.start({ shards: 1 });
    const lease = c.uuid();
    await begin(c, "1", lease, ["late"]);
    c.fate = ({ method }) => (method === "exchange" ? "lose" : "deliver");
    await decide(c, "1", lease, "COMMITTED");
    c.fate = () => "deliver";
    const seen = { incarnation: 2 ** 40, position: 1 };
    const lost = c.ledger("1").object.begin(beginRequest(c.envelope, c.uuid(), ["other"], { seen }));
    expect(await c.clock.runUntil(lost)).toEqual(LOST);
    await c.pass(60_000);
    expect(c.claims()).toEqual([]);
    const message = { ...c.envelope, dryRun: false, operator, revokedKeys: [], removedAtMs: null };
    expect(await c.clock.runUntil(c.ledger("1").object.reconcile(message))).toMatchObject({ ok: true });
    await c.clock.runUntil(c.ledger("1").object.maintain({ ...c.envelope }));
    await c.pass(120_000);
    expect(c.claims()).toMatchObject([{ canonical: "late" }]);
  });

  test("[H7] can go on after a point that only a lie can contain was accepted", async () => {
    const c = await Cluster.start({ shards: 1 });
    const seen = { incarnation: Number.MAX_SAFE_INTEGER, position: Number.MAX_SAFE_INTEGER };
    const lost = c.ledger("1").object.inquire({ ...c.envelope, seen, shard: 0, questions: [] });
    expect(await c.clock.runUntil(lost)).toEqual(LOST);
    const message = { ...c.envelope, dryRun: false, operator, revokedKeys: [], removedAtMs: null };
    await c.clock.runUntil(c.ledger("1").object.reconcile(message));
    for (const name of ["a", "b", "c"]) await own(c, "1", name);
    c.ledger("1").restart();
    await own(c, "1", "d");
    const positions = c.ledger("1").sql.all<{ n: number }>("SELECT count(DISTINCT position) AS n FROM lease");
    expect(positions).toEqual([{ n: 4 }]);
    expect(c.claims()).toHaveLength(4);
  });

  test("[H2] [H4] refuses everything after the first answer of a shard that has seen more", async () => {
    const c = await Cluster.start({ shards: 1 });
    await own(c, "1", "early");
    const restore = saveLedger(c);
    await own(c, "1", "late");
    restore();
    const lease = c.uuid();
    expect(await begin(c, "1", lease, ["other"])).toEqual(LOST);
    expect(await decide(c, "1", lease, "COMMITTED")).toEqual(LOST);
    expect(events(c)[0]?.fields).toMatchObject({ part: "the ledger of cell 1", noticed_by: "shard 0" });
    c.ledger("1").restart();
    expect(await begin(c, "1", c.uuid(), ["more"])).toEqual(LOST);
    // The other cells are not affected.
    expect(await begin(c, "2", c.uuid(), ["free"])).toMatchObject({ ok: true });
  });

  test("[H2] learns it from an inquiry, and does not answer that the hold is nobody's", async () => {
    const c = await Cluster.start({ shards: 1 });
    await own(c, "1", "early");
    const restore = saveLedger(c);
    await begin(c, "1", c.uuid(), ["late"]);
    await begin(c, "1", c.uuid(), ["later"]);
    restore();
    expect(await begin(c, "2", c.uuid(), ["late"])).toMatchObject({
      ok: false,
      refusal: { code: "ABORTED" },
    });
    const [inquiry] = c.messages("inquire").slice(-1);
    expect(inquiry?.message).toHaveProperty("seen");
    expect(c.holds().map(({ canonical }) => canonical)).toEqual(["late", "later"]);
    expect(await begin(c, "1", c.uuid(), ["other"])).toEqual(LOST);
  });

  test("[H3] [B3] learns it from a shard that got one message of the instance that it has lost", async () => {
    const c = await Cluster.start({ shards: 1 });
    await own(c, "1", "early");
    const restore = saveLedger(c);
    c.ledger("1").restart();
    const lease = c.uuid();
    await begin(c, "1", lease, ["late"]);
    const { incarnation } = c.shard(0).sql.all<{ incarnation: number }>(`SELECT * FROM ${HOLDS}`)[0] ?? {};
    restore();
    // Without the shard, the third instance raises its incarnation above that of the second one.
    c.fate = ({ method }) => (method === "exchange" ? "lose" : "deliver");
    await begin(c, "1", c.uuid(), ["other"]);
    c.fate = () => "deliver";
    expect(c.ledger("1").object.told().point?.incarnation).toBeGreaterThan(incarnation ?? 0);
    expect(await begin(c, "2", c.uuid(), ["late"])).toEqual(no("ABORTED"));
    expect(c.holds()).toEqual([{ canonical: "late", cell: "1", lease }]);
    expect(await decide(c, "1", lease, "COMMITTED")).toEqual(LOST);
    expect(events(c)).toHaveLength(1);
    expect(events(c)[0]?.fields).toMatchObject({
      part: "the ledger of cell 1",
      noticed_by: "shard 0",
      seen_incarnation: incarnation,
    });
    // Its reconciliation gives the lease back to the cell (H7).
    const message = { ...c.envelope, dryRun: false, operator, revokedKeys: [], removedAtMs: null };
    await c.clock.runUntil(c.ledger("1").object.reconcile(message));
    await c.pass(60_000);
    expect(await decide(c, "1", lease, "COMMITTED")).toMatchObject({ ok: true });
    expect(c.claims()).toContainEqual(expect.objectContaining({ canonical: "late", cell: "1" }));
    expect(events(c)).toHaveLength(1);
  });

  test("[H3] is noticed by a shard that applied a commit because an inquiry told it", async () => {
    const c = await Cluster.start({ shards: 1 });
    await own(c, "1", "early");
    const restore = saveLedger(c);
    const lease = c.uuid();
    await begin(c, "1", lease, ["late"]);
    c.fate = ({ method }) => (method === "exchange" ? "lose" : "deliver");
    await decide(c, "1", lease, "COMMITTED");
    c.shard(0).alarmAtMs = c.clock.now();
    await c.pass(10_000);
    expect(c.claims()).toContainEqual(expect.objectContaining({ canonical: "late" }));
    restore();
    c.fate = () => "deliver";
    expect(await begin(c, "1", c.uuid(), ["other"])).toEqual(LOST);
  });

  test("[B8] [H4] learns it from a question about an attempt of an instance that it has lost", async () => {
    const c = await Cluster.start({ shards: 1 });
    await own(c, "1", "early");
    const restore = saveLedger(c);
    c.ledger("1").restart();
    await begin(c, "1", c.uuid(), ["late"]);
    const questions = c.shard(0).sql.all<Question>(`SELECT lease, incarnation, counter, epoch FROM ${HOLDS}`);
    restore();
    // A new shard may have stored a later point of the ledger, which came from another shard (G7).
    const message = { ...c.envelope, shard: 0, questions };
    expect(await c.clock.runUntil(c.ledger("1").object.inquire(message))).toEqual(LOST);
    expect(events(c)[0]?.fields).toMatchObject({ seen_incarnation: questions[0]?.incarnation });
  });

  test("[H3] learns it from a shard to which the lost instance has sent one decision", async () => {
    const c = await Cluster.start({ shards: 1 });
    const lease = c.uuid();
    await begin(c, "1", lease, ["early"]);
    c.ledger("1").restart();
    const restore = saveLedger(c);
    await decide(c, "1", lease, "COMMITTED");
    expect(c.claims()).toHaveLength(1);
    restore();
    const prepares = c.messages("exchange").length;
    expect(await begin(c, "1", c.uuid(), ["other"])).toEqual(LOST);
    expect(c.holds()).toEqual([]);
    expect(c.messages("exchange")).toHaveLength(prepares + 1);
  });

  test("[H5] [B3] repeats a message for a shard that knows only an older instance", async () => {
    const c = await Cluster.start({ shards: 1 });
    await own(c, "1", "early");
    const sent = (): Exchange[] => c.messages("exchange").map(({ message }) => message as Exchange);
    // The shard hears nothing of the second instance. The third one says that it has its point.
    c.ledger("1").restart();
    c.fate = ({ method }) => (method === "exchange" ? "lose" : "deliver");
    await begin(c, "1", c.uuid(), ["lost"]);
    c.fate = () => "deliver";
    c.ledger("1").restart();
    const before = sent().length;
    expect(await begin(c, "1", c.uuid(), ["late"])).toMatchObject({ ok: true });
    const [first, second] = sent().slice(before);
    expect(sent()).toHaveLength(before + 2);
    expect(second?.prepares).toEqual(first?.prepares);
    expect(second?.confirmed).not.toEqual(first?.confirmed);
    // From then on, and after a restart, one message is enough.
    for (const name of ["later", "latest"]) {
      const count = sent().length;
      expect(await begin(c, "1", c.uuid(), [name])).toMatchObject({ ok: true });
      expect(sent()).toHaveLength(count + 1);
      c.ledger("1").restart();
    }
  });

  test("[H5] carries out nothing for an instance that another one has replaced", async () => {
    const c = await Cluster.start({ shards: 1 });
    await own(c, "1", "early");
    const replaced = c.ledger("1").restart({ keepsStorage: true });
    await own(c, "1", "late");
    for (const restarts of [0, 1]) {
      for (let n = 0; n < restarts; n += 1) c.ledger("1").restart();
      await own(c, "1", `late-${restarts}`);
      const request = beginRequest(c.envelope, c.uuid(), ["other"]);
      expect(await c.clock.runUntil(replaced.begin(request))).toMatchObject({ ok: false });
      expect(c.holds()).toEqual([]);
      expect(events(c)).toEqual([]);
    }
  });

  test("[H5] does not make the shard forget, even if the shard's answers are lost", async () => {
    const c = await Cluster.start({ shards: 1 });
    await own(c, "1", "early");
    const restore = saveLedger(c);
    await own(c, "1", "late");
    restore();
    c.fate = ({ method }) => (method === "exchange" ? "lose_answer" : "deliver");
    for (let n = 0; n < 3; n += 1) await begin(c, "1", c.uuid(), [`lost-${n}`]);
    c.fate = () => "deliver";
    expect(await begin(c, "1", c.uuid(), ["other"])).toEqual(LOST);
  });

  test("[H1] [B3] never uses an incarnation a second time", async () => {
    const c = await Cluster.start({ shards: 1 });
    const restore = saveLedger(c);
    await begin(c, "1", c.uuid(), ["first"]);
    restore();
    await begin(c, "1", c.uuid(), ["second"]);
    const used = c
      .messages("exchange")
      .flatMap(({ message }) => (message as Exchange).prepares)
      .map(({ incarnation }) => incarnation);
    expect(used).toHaveLength(2);
    expect(new Set(used).size).toBe(2);
  });
});

describe("a cell that tells its ledger what it has seen", () => {
  const seenBy = (c: Cluster): { seen?: HistoryPoint } => {
    const { point } = c.ledger("1").object.told();
    return point === undefined ? {} : { seen: point };
  };

  test("[L7] notices a ledger that went back to between a grant and its commit", async () => {
    const c = await Cluster.start({ shards: 1 });
    await own(c, "1", "early");
    const restore = saveLedger(c);
    const lease = c.uuid();
    await begin(c, "1", lease, ["late"]);
    const known = seenBy(c);
    restore();
    const request = { ...decideRequest(c.envelope, lease, "COMMITTED"), ...known };
    expect(await c.clock.runUntil(c.ledger("1").object.decide(request))).toEqual(LOST);
    expect(events(c)[0]?.fields).toMatchObject({ part: "the ledger of cell 1", noticed_by: "cell 1" });
  });

  for (const change of ["a freeze", "a revoked key"])
    test(`[H1] [L7] notices a ledger that lost ${change}, of which no shard knows`, async () => {
      const c = await Cluster.start({ shards: 1 });
      await own(c, "1", "early");
      await c.pass(30_000);
      const { object } = c.ledger("1");
      const setState = async (state: "FROZEN"): Promise<unknown> =>
        c.clock.runUntil(object.setState({ ...c.envelope, state, stateVersion: await versionOf(c) }));
      const restore = saveLedger(c);
      const changes = {
        "a freeze": () => setState("FROZEN"),
        "a revoked key": () =>
          c.clock.runUntil(object.revoke({ ...c.envelope, keyId: "k9", expiresAtMs: 9e15 })),
      };
      expect(await changes[change as keyof typeof changes]()).toMatchObject({ ok: true });
      const known = seenBy(c);
      restore();
      const request = { ...beginRequest(c.envelope, c.uuid(), ["late"]), ...known };
      expect(await c.clock.runUntil(c.ledger("1").object.begin(request))).toEqual(LOST);
    });

  test("[L7] notices that ledgers and shards went back to one moment", async () => {
    const c = await Cluster.start({ shards: 1 });
    await own(c, "1", "early");
    const restores = [saveLedger(c), saveShard(c)];
    await own(c, "1", "late");
    const known = seenBy(c);
    for (const restore of restores) restore();
    // Without the cell's point, nobody knows of the loss.
    expect(await begin(c, "1", c.uuid(), ["free"])).toMatchObject({ ok: true });
    const request = { ...beginRequest(c.envelope, c.uuid(), ["late"]), ...known };
    expect(await c.clock.runUntil(c.ledger("1").object.begin(request))).toEqual(LOST);
  });

  test("[L7] a point of an earlier instance is no loss", async () => {
    const c = await Cluster.start({ shards: 1 });
    await own(c, "1", "early");
    const known = seenBy(c);
    c.ledger("1").restart();
    await own(c, "1", "late");
    const request = { ...beginRequest(c.envelope, c.uuid(), ["free"]), ...known };
    expect(await c.clock.runUntil(c.ledger("1").object.begin(request))).toMatchObject({ ok: true });
    expect(events(c)).toEqual([]);
  });

  test.each([
    ["a later day", (point: HistoryPoint) => ({ ...point, position: point.position + 2 * DAY_POSITIONS })],
    [
      "2^23 instances later",
      (point: HistoryPoint) => ({ ...point, incarnation: point.incarnation + 2 ** 47 }),
    ],
    ["every number at its end", () => ({ incarnation: 2 ** 53 - 1, position: 2 ** 53 - 1 })],
  ])("[L7] a point that the ledger cannot have had is refused and no loss: %s", async (_, forge) => {
    const c = await Cluster.start({ shards: 1 });
    await own(c, "1", "early");
    const { seen = { incarnation: 0, position: 0 } } = seenBy(c);
    const request = beginRequest(c.envelope, c.uuid(), ["free"]);
    const forged = c.ledger("1").object.begin({ ...request, seen: forge(seen) });
    expect(await c.clock.runUntil(forged)).toEqual(no("INVALID_ARGUMENT", { field: "leasehold-history" }));
    expect(events(c)).toEqual([]);
    expect(await c.clock.runUntil(c.ledger("1").object.begin(request))).toMatchObject({ ok: true });
  });

  test("[L7] a point from when the clock was ahead is a loss, once the clock is right again", async () => {
    const c = await Cluster.start({ shards: 1 });
    c.clock.jump(3 * 86_400_000);
    await own(c, "1", "early");
    const restore = saveLedger(c);
    await own(c, "1", "late");
    await c.clock.pass(3_600_000);
    await own(c, "1", "later");
    const known = seenBy(c);
    c.clock.jump(-3 * 86_400_000);
    restore();
    const request = { ...beginRequest(c.envelope, c.uuid(), ["free"]), ...known };
    expect(await c.clock.runUntil(c.ledger("1").object.begin(request))).toEqual(LOST);
  });

  test("[L7] a ledger whose storage is empty notices the point of a long history", async () => {
    const c = await Cluster.start({ shards: 1 });
    const seen = { incarnation: 10_000 * 16 ** 6, position: c.clock.now() * 1_024 + DAY_POSITIONS / 2 };
    const request = { ...beginRequest(c.envelope, c.uuid(), ["free"]), seen };
    expect(await c.clock.runUntil(c.ledger("1").object.begin(request))).toEqual(LOST);
  });

  test("[A1] [L7] a revoked key cannot make the ledger refuse everything", async () => {
    const c = await Cluster.start({ shards: 1 });
    await own(c, "1", "early");
    const request = beginRequest(c.envelope, c.uuid(), ["free"]);
    const { keyId } = request.caller;
    const revoked = { ...c.envelope, keyId, expiresAtMs: c.clock.now() + 1_000_000 };
    await c.clock.runUntil(c.ledger("1").object.revoke(revoked));
    const ahead = { ...request, seen: { incarnation: 1, position: 1 } };
    expect(await c.clock.runUntil(c.ledger("1").object.begin(ahead))).toEqual(
      no("UNAUTHENTICATED", { reason: "KEY_REVOKED" }),
    );
    expect(events(c)).toEqual([]);
  });
});

describe("parts that did not go back in time", () => {
  test("[H2] restarts of every part, at any moment, are no loss", async () => {
    const c = await Cluster.start({ shards: 2 });
    for (let round = 0; round < 30; round += 1) {
      const lease = c.uuid();
      expect(await begin(c, "1", lease, [`a-${round}`, `b-${round}`])).toMatchObject({ ok: true });
      if (round % 3 === 0) c.ledger("1").restart();
      expect(await decide(c, "1", lease, "COMMITTED")).toMatchObject({ ok: true });
      c.shard(round % 2).restart();
      if (round % 5 === 0) await c.pass(10_000);
    }
    expect(events(c)).toEqual([]);
  });

  test("[H2] a part tells no point that is not durable", async () => {
    const c = await Cluster.start({ shards: 1 });
    await own(c, "1", "early");
    const lift = c.ledger("1").sql.holdFlushes();
    const first = c.ledger("1").object.begin(beginRequest(c.envelope, c.uuid(), ["late"]));
    await c.clock.pass(50);
    const second = c.ledger("1").object.begin(beginRequest(c.envelope, c.uuid(), ["later"]));
    await c.clock.pass(50);
    const sent = c.messages("exchange").at(-1)?.message as Exchange;
    const [row] = c.ledger("1").sql.all<{ newest: number }>("SELECT max(position) AS newest FROM lease");
    expect(sent.prepares[0]?.ops[0]?.value).toBe("later");
    expect(sent.point?.position).toBeLessThan(row?.newest ?? 0);
    lift();
    expect(await c.clock.runUntil(Promise.all([first, second]))).toMatchObject([{ ok: true }, { ok: true }]);
  });

  test("[B8] [H4] a replaced instance takes nothing that its successors have done for a loss", async () => {
    const c = await Cluster.start({ shards: 1 });
    await own(c, "1", "early");
    const replaced = c.ledger("1").restart({ keepsStorage: true });
    const ask = async (name: string) => {
      const [hold] = c
        .shard(0)
        .sql.all<Question>(
          `SELECT lease, incarnation, counter, epoch FROM ${HOLDS} WHERE canonical = ?`,
          name,
        );
      if (hold === undefined) throw new Error(`${name} is not held`);
      const { point: seen = { incarnation: 0, position: 0 } } = c.ledger("1").object.told();
      return c.clock.runUntil(replaced.inquire({ ...c.envelope, seen, shard: 0, questions: [hold] }));
    };
    await begin(c, "1", c.uuid(), ["late"]);
    expect(await ask("late")).toEqual(REPLACED);
    const { point } = c.ledger("1").object.told();
    const request = beginRequest(c.envelope, c.uuid(), ["other"], point === undefined ? {} : { seen: point });
    expect(await c.clock.runUntil(replaced.begin(request))).toEqual(REPLACED);
    c.ledger("1").restart();
    await begin(c, "1", c.uuid(), ["later"]);
    expect(await ask("later")).toEqual(REPLACED);
    expect(events(c)).toEqual([]);
    c.ledger("1").restart();
    expect(await begin(c, "1", c.uuid(), ["latest"])).toMatchObject({ ok: true });
  });

  test("[H4] an exchange without knowledge of the shard is carried out", async () => {
    const c = await Cluster.start({ shards: 1 });
    expect(await c.clock.runUntil(c.shard(0).object.exchange(exchangeOf(c.envelope, "1")))).toEqual(
      ok({ seen: null, point: null, prepares: [] }),
    );
  });
});

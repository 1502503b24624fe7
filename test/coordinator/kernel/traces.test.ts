/** Which messages name the traces of calls. What is recorded of them is in test/coordinator/tracing. */
import { expect, test } from "vitest";
import type { Envelope } from "../../../src/coordinator/kernel/messages.ts";
import { MAX_TRACES, sharedTraces } from "../../../src/coordinator/kernel/traces.ts";
import { Cluster } from "../../support/cluster.ts";
import { beginRequest, decideRequest, keyOf } from "../../support/ops.ts";

const traces = (c: Cluster, method: string): (readonly string[] | undefined)[] =>
  c.messages(method).map(({ message }) => (message as Envelope).traces);

test("calls that share a message keep their traces apart, up to a limit", () => {
  expect(sharedTraces([undefined, undefined])).toEqual({});
  expect(sharedTraces([["a"], undefined, ["b"], ["a"]])).toEqual({ traces: ["a", "b"] });
  const many = Array.from({ length: 100 }, (_, n) => [String(n)]);
  expect(sharedTraces(many).traces).toEqual(many.flat().slice(0, MAX_TRACES));
});

test("[N1] a message to a shard names the traces of the leases in it, and of no others", async () => {
  const c = await Cluster.start({ shards: 1 });
  const { object } = c.ledger("1");
  const begin = (name: string, ...of: string[]): Promise<unknown> =>
    object.begin({
      ...beginRequest(c.envelope, c.uuid(), [name]),
      ...(of.length === 0 ? {} : { traces: of }),
    });
  await c.clock.runUntil(begin("warm"));
  // The first message is under way when the others arrive, so they share the next one.
  c.fate = () => "slow";
  const begins = [begin("first", "A")];
  await c.clock.pass(1);
  begins.push(begin("second", "B"), begin("third"), begin("fourth", "C"));
  await c.clock.runUntil(Promise.all(begins));
  expect(traces(c, "exchange")).toEqual([undefined, ["A"], ["B", "C"]]);
});

test("[C3] the first delivery of a decision belongs to the call that decided, retries to none", async () => {
  const c = await Cluster.start({ shards: 1 });
  const { object } = c.ledger("1");
  const lease = c.uuid();
  await c.clock.runUntil(object.begin(beginRequest(c.envelope, lease, ["ada"])));
  c.fate = ({ method }) => (method === "exchange" ? "lose" : "deliver");
  await c.clock.runUntil(object.decide({ ...decideRequest(c.envelope, lease, "COMMITTED"), traces: ["A"] }));
  await c.pass(c.limits.exchangeTimeoutMs + 1);
  c.fate = () => "deliver";
  await c.pass(10_000);
  const [, first, ...later] = traces(c, "exchange");
  expect(first).toEqual(["A"]);
  expect(later.length).toBeGreaterThan(0);
  expect(later.every((each) => each === undefined)).toBe(true);
});

test("[B8] an inquiry names the traces of the reads and begins that wait for it", async () => {
  const c = await Cluster.start({ shards: 1 });
  await c.clock.runUntil(c.ledger("1").object.begin(beginRequest(c.envelope, c.uuid(), ["ada"])));
  const shard = c.shard(0).object;
  await c.clock.runUntil(shard.lookup({ ...c.envelope, traces: ["A"], keys: [keyOf("ROUTES", "ada")] }));
  await c.clock.runUntil(shard.lookup({ ...c.envelope, keys: [keyOf("ROUTES", "ada")] }));
  const begin = { ...beginRequest(c.envelope, c.uuid(), ["ada"]), traces: ["B"] };
  await c.clock.runUntil(c.ledger("2").object.begin(begin));
  expect(traces(c, "settle")).toEqual([["B"]]);
  expect(traces(c, "inquire")).toEqual([["A"], undefined, ["B"]]);
});

test("a trace costs no message, no transaction and no row", async () => {
  const costOf = async (more: Pick<Envelope, "traces">): Promise<object> => {
    const c = await Cluster.start({ shards: 4 });
    const lease = c.uuid();
    const { object } = c.ledger("1");
    await c.clock.runUntil(object.begin({ ...beginRequest(c.envelope, lease, ["a", "b", "c"]), ...more }));
    await c.clock.runUntil(object.decide({ ...decideRequest(c.envelope, lease, "COMMITTED"), ...more }));
    await c.pass(10_000);
    const counts = c.nodes.map(({ name, sql }) => ({ name, ...sql.counts }));
    return { messages: c.calls.length, counts };
  };
  const traced = await costOf({ traces: ["A"] });
  const untraced = await costOf({});
  expect(traced).toEqual(untraced);
});

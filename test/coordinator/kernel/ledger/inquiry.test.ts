/** Tests of a ledger's answers about one execution. Every part of an execution's identity matters (B8). */
import { expect, test } from "vitest";
import type { Exchange, Prepare, Question } from "../../../../src/coordinator/kernel/messages.ts";
import { Cluster } from "../../../support/cluster.ts";
import { beginRequest, decideRequest } from "../../../support/ops.ts";

function lastPrepare(c: Cluster): Prepare {
  const prepare = c
    .messages("exchange")
    .flatMap((call) => (call.message as Exchange).prepares)
    .at(-1);
  if (prepare === undefined) throw new Error("no prepare was sent");
  return prepare;
}

/** A granted lease of the ledger's second instance, on the only shard. */
async function granted(): Promise<{
  c: Cluster;
  question: Question;
  /** The incarnation of the first instance. */
  earlier: number;
  ask: (shard: number, question: Question) => Promise<unknown>;
}> {
  const c = await Cluster.start({ shards: 1 });
  await c.clock.runUntil(c.ledger("1").object.begin(beginRequest(c.envelope, c.uuid(), ["warm-up"])));
  const earlier = lastPrepare(c).incarnation;
  c.ledger("1").restart();
  const lease = c.uuid();
  await c.clock.runUntil(c.ledger("1").object.begin(beginRequest(c.envelope, lease, ["ada"])));
  const prepare = lastPrepare(c);
  const question: Question = { lease, incarnation: prepare.incarnation, counter: prepare.counter, epoch: 2 };
  const ask = async (shard: number, asked: Question): Promise<unknown> => {
    const answer = await c.clock.runUntil(
      c.ledger("1").object.inquire({ ...c.envelope, shard, questions: [asked] }),
    );
    return answer.ok ? answer.value.verdicts[0] : answer.refusal.code;
  };
  return { c, question, earlier, ask };
}

test("[B8] [B4] only the execution that a granted lease was granted with is `granted`", async () => {
  const { question, earlier, ask } = await granted();
  expect(await ask(0, question)).toBe("granted");
  expect(await ask(1, question)).toBe("gone");
  const { counter, epoch } = question;
  const others: Partial<Question>[] = [
    { incarnation: earlier },
    { counter: counter + 1 },
    { counter: counter - 1 },
    { epoch: epoch + 1 },
  ];
  for (const other of others) expect(await ask(0, { ...question, ...other })).toBe("gone");
});

test.each([
  ["COMMITTED", "committed"],
  ["ROLLED_BACK", "rolled_back"],
] as const)(
  "[B8] [S2] of a lease that was decided %s, its execution is %s until it is applied, any other is gone",
  async (outcome, verdict) => {
    const { c, question, earlier, ask } = await granted();
    c.fate = (call) => (call.method === "exchange" ? "lose" : "deliver");
    await c.clock.runUntil(c.ledger("1").object.decide(decideRequest(c.envelope, question.lease, outcome)));
    expect(await ask(0, question)).toBe(verdict);
    expect(await ask(0, { ...question, epoch: question.epoch + 1 })).toBe("gone");
    expect(await ask(0, { ...question, incarnation: earlier })).toBe("gone");
    c.fate = () => "deliver";
    await c.pass(60_000);
    // The decision is applied everywhere, so no hold of it is left. A prepare that arrives twice makes a hold
    // with another epoch. Both are gone (S2).
    expect(await ask(0, question)).toBe("gone");
    expect(await ask(0, { ...question, epoch: question.epoch + 1 })).toBe("gone");
  },
);

test("[B8] [B7] a running attempt is `running`, and no other attempt is", async () => {
  const { c, earlier, ask } = await granted();
  const lease = c.uuid();
  c.fate = (call) => (call.method === "exchange" ? "lose_answer" : "deliver");
  const running = c.ledger("1").object.begin(beginRequest(c.envelope, lease, ["bob"]));
  await c.clock.pass(50);
  const prepare = lastPrepare(c);
  const question: Question = { lease, incarnation: prepare.incarnation, counter: prepare.counter, epoch: 3 };
  const askNow = async (asked: Question): Promise<unknown> =>
    (await Promise.all([ask(0, asked), c.clock.pass(0)]))[0];
  expect(await askNow(question)).toBe("running");
  expect(await askNow({ ...question, counter: question.counter - 1 })).toBe("gone");
  expect(await askNow({ ...question, incarnation: earlier })).toBe("gone");
  await c.clock.runUntil(running);
  expect(await ask(0, question)).toBe("gone");
});

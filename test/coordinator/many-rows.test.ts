/** The number of statements with which a shard carries out a message (N2), and what they do. */
import { HOLDS } from "../support/holds.ts";
import { expect, test } from "vitest";
import type {
  Decision,
  Exchange,
  Outcome,
  Prepare,
  PrepareAnswer,
} from "../../src/coordinator/kernel/messages.ts";
import { Cluster } from "../support/cluster.ts";
import { beginRequest } from "../support/ops.ts";

const CELL = "1";

/** One shard that gets messages from a ledger, and the statements that it runs. */
class Messages {
  readonly c: Cluster;
  readonly #leases = new Map<string, { prepare: Prepare; epoch: number }>();
  #counter = 0;

  constructor(c: Cluster) {
    this.c = c;
  }

  static async start(): Promise<Messages> {
    const messages = new Messages(await Cluster.start({ shards: 1, limits: { sweepAfterMs: 600_000 } }));
    // The first message confirms the placement.
    await messages.send([], []);
    return messages;
  }

  async send(decisions: Decision[], prepares: Prepare[]): Promise<readonly PrepareAnswer[]> {
    const { c } = this;
    const message: Exchange = {
      ...c.envelope,
      cell: CELL,
      point: null,
      confirmed: null,
      decisions,
      prepares,
    };
    const answer = await c.clock.runUntil(c.shard(0).object.exchange(message));
    if (!answer.ok) throw new Error(answer.refusal.detail);
    const answers = answer.value.prepares as PrepareAnswer[];
    for (const [index, granted] of answers.entries()) {
      const prepare = prepares[index];
      if (prepare !== undefined && granted.granted)
        this.#leases.set(prepare.lease, { prepare, epoch: granted.epoch });
    }
    return answers;
  }

  creates(...names: string[]): Prepare {
    return this.#prepareOf(names.map((value) => ({ value })));
  }

  destroys(...names: string[]): Prepare {
    return this.#prepareOf(
      names.map((value) => ({ kind: "destroy" as const, value, subject: null, source: null })),
    );
  }

  #prepareOf(specs: Parameters<typeof beginRequest>[2]): Prepare {
    const { ops, allowMissing, lease } = beginRequest(this.c.envelope, this.c.uuid(), specs);
    return { cell: CELL, lease, incarnation: 1, counter: ++this.#counter, ops, allowMissing };
  }

  decision({ lease }: Prepare, outcome: Outcome): Decision {
    const granted = this.#leases.get(lease);
    if (granted === undefined) throw new Error("the prepare was not granted");
    const { cell, incarnation, counter, ops } = granted.prepare;
    const keys = ops.map(({ type, canonical }) => ({ type, canonical }));
    return { cell, lease, incarnation, counter, outcome, epoch: granted.epoch, keys };
  }

  /** Returns the statements on claims, and those that write the log, without their lists of values. */
  async statementsOf(work: () => Promise<unknown>): Promise<string[]> {
    const { sql } = this.c.shard(0);
    const all = sql.all.bind(sql);
    const statements: string[] = [];
    sql.all = (statement, ...bindings) => {
      expect(bindings.length).toBeLessThanOrEqual(100);
      const kind = /(INSERT INTO|DELETE FROM|UPDATE|SELECT) ?(\w+)?/.exec(statement)?.[0];
      const isCounted = /\bclaim\b|(INTO|UPDATE|DELETE FROM) log\b/.test(statement);
      if (isCounted && !statement.includes("LIMIT 1")) statements.push(String(kind));
      return all(statement, ...bindings);
    };
    await work();
    sql.all = all;
    return statements;
  }

  names(): string[] {
    const rows = this.c.shard(0).database.prepare("SELECT canonical FROM claim ORDER BY canonical").all();
    return rows.map(({ canonical }) => String(canonical));
  }

  holds(): number {
    return this.c.shard(0).database.prepare(`SELECT 1 FROM ${HOLDS}`).all().length;
  }
}

const READ = expect.stringContaining("SELECT") as string;
const KEEP = "INSERT INTO past_claim";

test("[N2] a message takes one statement for each kind of work, whatever the number of leases", async () => {
  const messages = await Messages.start();
  const prepares = ["a", "b", "c"].map((name) => messages.creates(`${name}1`, `${name}2`));
  const begun = await messages.statementsOf(() => messages.send([], prepares));
  expect(begun).toEqual([READ, "INSERT INTO log"]);

  const [first, second, third] = prepares as [Prepare, Prepare, Prepare];
  const ends = [
    messages.decision(first, "COMMITTED"),
    messages.decision(second, "ROLLED_BACK"),
    messages.decision(third, "COMMITTED"),
  ];
  const ended = await messages.statementsOf(() => messages.send(ends, []));
  expect(ended).toEqual(["INSERT INTO claim", "INSERT INTO log"]);
  expect(messages.names()).toEqual(["a1", "a2", "c1", "c2"]);
  expect(messages.holds()).toBe(0);

  const destroy = messages.destroys("a1", "c2");
  await messages.send([], [destroy]);
  const destroyed = await messages.statementsOf(() =>
    messages.send([messages.decision(destroy, "COMMITTED")], []),
  );
  expect(destroyed).toEqual([KEEP, "DELETE FROM claim", "INSERT INTO log"]);
  expect(messages.names()).toEqual(["a2", "c1"]);
});

test("[N2] a repeated decision runs no statement, and a refused prepare only reads", async () => {
  const messages = await Messages.start();
  const prepare = messages.creates("ada");
  await messages.send([], [prepare]);
  const commit = messages.decision(prepare, "COMMITTED");
  await messages.send([commit], []);
  expect(await messages.statementsOf(() => messages.send([commit], []))).toEqual([]);
  expect(await messages.statementsOf(() => messages.send([], [messages.creates("ada")]))).toEqual([READ]);
});

test("[B4] a later prepare of a message meets the holds of an earlier one", async () => {
  const messages = await Messages.start();
  const answers = await messages.send(
    [],
    [messages.creates("ada", "bob"), messages.creates("bob", "cem"), messages.creates("cem")],
  );
  expect(answers.map(({ granted }) => granted)).toEqual([true, false, true]);
  expect(answers[1]).toMatchObject({ conflicts: [{ kind: "leased", index: 0, owner: "self" }] });
  expect(messages.holds()).toBe(3);
});

test("[N2] a prepare takes a name that a decision of its message sets free", async () => {
  const messages = await Messages.start();
  const first = messages.creates("ada");
  await messages.send([], [first]);
  const [second] = await messages.send([messages.decision(first, "ROLLED_BACK")], [messages.creates("ada")]);
  expect(second?.granted).toBe(true);
  expect(messages.holds()).toBe(1);
});

test("[C2] of two decisions about one hold, a message carries out the first", async () => {
  const messages = await Messages.start();
  const prepare = messages.creates("ada");
  await messages.send([], [prepare]);
  const commit = messages.decision(prepare, "COMMITTED");
  await messages.send([commit, commit], []);
  expect(messages.names()).toEqual(["ada"]);
});

test("[N2] more rows than a statement has parameters for take another statement", async () => {
  const messages = await Messages.start();
  const names = Array.from({ length: 120 }, (_, n) => `n${String(n).padStart(3, "0")}`);
  const prepare = messages.creates(...names);
  const begun = await messages.statementsOf(() => messages.send([], [prepare]));
  // 50 names and 5 claims have at most 100 parameters. All holds are in one row of the log.
  expect(begun).toEqual([...Array<string>(3).fill(READ), "INSERT INTO log"]);
  const commit = messages.decision(prepare, "COMMITTED");
  const ended = await messages.statementsOf(() => messages.send([commit], []));
  expect(ended.filter((kind) => kind === "INSERT INTO claim")).toHaveLength(24);
  expect(messages.names()).toEqual(names);
});

import { expect, test } from "vitest";
import { GroupCommit } from "../../../src/coordinator/kernel/group-commit.ts";
import { ok, refused, type Refusal } from "../../../src/coordinator/kernel/refusal.ts";
import { alwaysWorks } from "../../../src/coordinator/kernel/standing.ts";
import { NodeSql } from "../../support/node-sql.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

function start(): {
  sql: NodeSql;
  commits: GroupCommit;
  halts: unknown[];
  standing: { stopped: Refusal | undefined };
} {
  const sql = new NodeSql();
  sql.database.exec("CREATE TABLE t (n INTEGER NOT NULL)");
  const halts: unknown[] = [];
  const standing: { stopped: Refusal | undefined } = { stopped: undefined };
  const halt = (reason: unknown): void => void halts.push(reason);
  const commits = new GroupCommit({ sql, clock: new VirtualClock(), halt }, { current: standing });
  return { sql, commits, halts, standing };
}

const rows = (sql: NodeSql): number[] =>
  sql.all<{ n: number }>("SELECT n FROM t ORDER BY n").map(({ n }) => n);
const insert = (sql: NodeSql, n: number) => () => {
  sql.all("INSERT INTO t (n) VALUES (?)", n);
  return ok(n);
};

test("[N1] work that is ready together shares one transaction; each item has its own result", async () => {
  const { sql, commits } = start();
  const before = sql.counts.transactions;
  expect(await Promise.all([1, 2, 3].map((n) => commits.submit("exchange", insert(sql, n))))).toEqual(
    [1, 2, 3].map(ok),
  );
  expect(sql.counts.transactions - before).toBe(1);
  expect(rows(sql)).toEqual([1, 2, 3]);
});

test("[M1] [B5] an item that throws rolls the transaction back and ends the instance", async () => {
  const { sql, commits, halts } = start();
  const works = [
    commits.submit("exchange", insert(sql, 1)),
    commits.submit("exchange", (): void => {
      throw new Error("a bug");
    }),
  ];
  expect((await Promise.allSettled(works)).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(rows(sql)).toEqual([]);
  expect(halts).toHaveLength(1);
});

test("[M1] work is synchronous: a promise does not compile", () => {
  const { commits } = start();
  // @ts-expect-error -- an await inside a transaction would commit it half done
  const asynchronous = (): unknown => commits.submit("exchange", async () => ok(1));
  expect(asynchronous).toBeTypeOf("function");
});

test("[B5] a failed flush answers no caller, although the write may be durable", async () => {
  const { sql, commits, halts } = start();
  sql.failFlushes();
  await expect(commits.submit("exchange", insert(sql, 1))).rejects.toThrow("did not answer");
  expect(halts).toHaveLength(1);
});

test("[N1] a transaction is limited by the weight of its items, and takes at least one", async () => {
  const { sql, commits } = start();
  const before = sql.counts.transactions;
  await Promise.all([1, 2, 3, 4].map((n) => commits.submit("exchange", insert(sql, n), { weight: 2_000 })));
  expect(sql.counts.transactions - before).toBe(2);
  await Promise.all([5, 6].map((n) => commits.submit("exchange", insert(sql, n), { weight: 1_000_000 })));
  expect(sql.counts.transactions - before).toBe(4);
});

test("[B5] a clock that fails ends the instance, so that no caller waits forever", async () => {
  const sql = new NodeSql();
  const halts: unknown[] = [];
  const clock = new VirtualClock();
  clock.turn = () => Promise.reject(new Error("too many timers"));
  const commits = new GroupCommit(
    { sql, clock, halt: (reason) => void halts.push(reason) },
    { current: alwaysWorks },
  );
  await expect(commits.submit("exchange", () => ok(1))).rejects.toThrow("too many timers");
  expect(halts).toHaveLength(1);
});

test("[M7] [N1] cells take turns, and the work of one cell is done in its order", async () => {
  const { sql, commits } = start();
  const done: string[] = [];
  const work = (owner: string, n: number) =>
    commits
      .submit("exchange", insert(sql, n), { weight: 1_000, owner })
      .then(() => done.push(`${owner}${n}`));
  const all = [1, 2, 3, 4, 5, 6, 7, 8].map((n) => work("a", n));
  await Promise.all([...all, work("b", 9)]);
  // A transaction has room for four. The other cell is in the first, behind one item of the busy cell.
  expect(done).toEqual(["a1", "b9", "a2", "a3", "a4", "a5", "a6", "a7", "a8"]);
});

test("[H4] [M1] work that waits while a loss is noticed is refused, once the loss is durable", async () => {
  const { sql, commits, standing } = start();
  const lost = refused("UNAVAILABLE", "lost");
  const release = sql.holdFlushes();
  let answered = false;
  const work = commits.submit("exchange", insert(sql, 1)).finally(() => (answered = true));
  standing.stopped = lost.refusal;
  const before = sql.counts.transactions;
  await new VirtualClock().pass(0);
  expect(answered).toBe(false);
  release();
  expect(await work).toEqual(lost);
  expect([rows(sql), sql.counts.transactions - before]).toEqual([[], 0]);
});

test("[H6] the work that accepts a loss is carried out, and the work beside it is not", async () => {
  const { sql, commits, standing } = start();
  const lost = refused("UNAVAILABLE", "lost");
  standing.stopped = lost.refusal;
  const works = [
    commits.submit("exchange", insert(sql, 1)),
    commits.submit("clear", insert(sql, 2), { evenIfStopped: true }),
  ];
  expect(await Promise.all(works)).toEqual([lost, ok(2)]);
  expect(rows(sql)).toEqual([2]);
});

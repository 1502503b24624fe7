/** What a growth costs in messages, transactions and rows. Tests count, they never measure time. */
import { expect, test } from "vitest";
import { Cluster } from "../../../support/cluster.ts";
import { Growing, rowsOn } from "../../../support/growing.ts";
import { beginRequest, decideRequest } from "../../../support/ops.ts";

const FROM = 2;
const TO = 6;
const CLAIMS = 3_000;
const BATCH = 500;
/** The rows that one message of a source reads (`PAGE_ROWS`). */
const PAGE_ROWS = 250;

const changes = (c: Cluster): number =>
  c.shards.reduce(
    (sum, [, { database }]) =>
      sum + (database.prepare("SELECT total_changes() AS n").get() as { n: number }).n,
    0,
  );

test("[G4] [G7] a name that moves costs two rows, and many names share a message", async () => {
  const c = await Cluster.start({ shards: FROM });
  for (let from = 0; from < CLAIMS; from += BATCH) {
    const lease = c.uuid();
    const names = Array.from({ length: BATCH }, (_, index) => `name-${from + index}`);
    await c.clock.runUntil(c.ledger("1").object.begin(beginRequest(c.envelope, lease, names)));
    await c.clock.runUntil(c.ledger("1").object.decide(decideRequest(c.envelope, lease, "COMMITTED")));
  }
  await c.pass(20_000);
  const growing = new Growing(c);
  c.calls.length = 0;
  const before = { changes: changes(c), transactions: c.transactions() };
  await growing.complete(TO);
  const moved = rowsOn(c, "claim").filter(({ shard }) => shard >= FROM).length;
  expect(moved).toBeGreaterThan(CLAIMS / 2);
  const targets = TO - FROM;
  const messages = c.messages("receive").length;
  const pages = Math.ceil(CLAIMS / PAGE_ROWS) + FROM;
  // Names, a check that all is there before the cut and one at the order of it, and the last message.
  expect(messages).toBeLessThanOrEqual(targets * (pages + 3 * FROM));
  // A message takes one transaction on each side. A page takes one more, and so does its deletion.
  expect(c.transactions() - before.transactions).toBeLessThanOrEqual(2 * messages + 3 * pages + 20);
  // One row is written to the new shard, and one is deleted. Each message writes the log and how far it is.
  const rows = changes(c) - before.changes;
  expect(rows).toBeGreaterThanOrEqual(2 * moved);
  expect(rows).toBeLessThanOrEqual(2 * moved + 8 * messages);
  expect(messages / moved).toBeLessThan(0.05);
});

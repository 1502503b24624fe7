/** Tests of a ledger whose leases were stored in the order of their changes. */
import { expect, test } from "vitest";
import { ledgerSchema } from "../../../src/core/ledger/schema.ts";
import { LedgerStore } from "../../../src/core/ledger/store.ts";
import { migrate } from "../../../src/core/meta.ts";
import { Cluster } from "../../support/cluster.ts";
import { beginRequest, decideRequest } from "../../support/ops.ts";

/** The number of steps before leases got their created positions as keys. */
const BEFORE = 4;

interface OldLease {
  lease: string;
  decided: 0 | 1 | 2;
  position: number;
  created?: number;
  epochs?: string | null;
}

async function migrated(leases: readonly OldLease[], through: number): Promise<Cluster> {
  const c = await Cluster.start({ shards: 1 });
  const { database, sql } = c.ledger("1");
  for (const { name } of database.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all())
    database.exec(`DROP TABLE "${String(name)}"`);
  migrate(sql, ledgerSchema.slice(0, BEFORE));
  for (const { lease, decided, position, created = position, epochs = "{}" } of leases)
    database
      .prepare(
        `INSERT INTO lease (lease, decided, position, created_position, created_at_ms, decided_at_ms, state,
                            fence, incarnation, counter, epochs, payload, payload_hash, creates, destroys,
                            replaces, missing)
         VALUES (?, ?, ?, ?, 1, ?, ?, 0, 1, 1, ?, '[]', '', 0, 0, 0, 0)`,
      )
      .run(lease, decided, position, created, decided && 2, decided ? "ROLLED_BACK" : "GRANTED", epochs);
  database
    .prepare("INSERT INTO meta (name, value) VALUES ('applied', ?)")
    .run(JSON.stringify({ position: 1, shards: {}, through }));
  c.ledger("1").restart();
  return c;
}

test("[S2] [R1] leases that were stored before keep what they were, and are found", async () => {
  const c = await migrated(
    [
      { lease: "open", decided: 0, position: 10 },
      { lease: "applied", decided: 1, position: 20, created: 11, epochs: null },
      { lease: "unapplied", decided: 1, position: 21, created: 12 },
      { lease: "fence", decided: 2, position: 13, epochs: null },
      // A reconciliation has given it a new position.
      { lease: "moved", decided: 0, position: 40, created: 5 },
      { lease: "new", decided: 0, position: 35 },
    ],
    30,
  );
  const { sql } = c.ledger("1");
  migrate(sql, ledgerSchema);
  const store = new LedgerStore(sql, "1");
  expect(store.lastPosition()).toBe(40);
  expect(store.granted(0, 10).map(({ lease }) => lease)).toEqual(["open", "new", "moved"]);
  expect(store.granted(10, 1).map(({ lease }) => lease)).toEqual(["new"]);
  expect(store.unapplied(0, 40, 10).map(({ lease }) => lease)).toEqual(["unapplied"]);
  expect(store.count(2)).toBe(1);
  const applied = store.outcomes(1, 0, 10).filter(({ pending }) => pending === 0);
  expect(applied.map(({ lease }) => lease)).toEqual(["applied"]);
});

test("[S2] [H1] a ledger that was stored before goes on", async () => {
  const c = await migrated([{ lease: "applied", decided: 1, position: 20, epochs: null }], 30);
  const { object } = c.ledger("1");
  const lease = c.uuid();
  expect(await c.clock.runUntil(object.begin(beginRequest(c.envelope, lease, ["ada"])))).toMatchObject({
    ok: true,
  });
  expect(await c.clock.runUntil(object.decide(decideRequest(c.envelope, lease, "COMMITTED")))).toMatchObject({
    ok: true,
  });
  await c.pass(10_000);
  expect(c.claims().map(({ canonical }) => canonical)).toEqual(["ada"]);
});

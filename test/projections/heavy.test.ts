import { runInDurableObject } from "cloudflare:test";
import { beforeEach, describe, expect, test } from "vitest";
import { encodePayload } from "../../src/core/ledger/payload.ts";
import { positionAt } from "../../src/core/ledger/position.ts";
import { runCron } from "../../src/projections/cron.ts";
import { opsOf } from "../support/ops.ts";
import { begin, env, envelope, expectD1ToMatch, ledgerOf, startFleet, uuidOf } from "./fleet.ts";

const LEASES = 20;
const MESSAGE_BYTES = 32 * 1024 * 1024;

/** Inserts leases into the ledger directly, because begins of so many long names would take minutes. */
async function plant(cell: string, from: number, count: number, payload: string): Promise<void> {
  await runInDurableObject(ledgerOf(cell), (_, state) => {
    for (let n = from; n < from + count; n += 1) {
      const position = positionAt(Date.now()) + n;
      state.storage.sql.exec(
        `INSERT INTO lease (lease, decided, position, created_position, created_at_ms,
          state, fence, incarnation, counter, epochs, payload,
          payload_hash, creates, destroys, replaces, missing)
         VALUES (?, 0, ?, ?, 0, 'GRANTED', 0, 1, ?, '{}', ?, '', 1000, 0, 0, 0)`,
        uuidOf(n),
        position,
        position,
        n,
        payload,
      );
    }
  });
}

describe("leases of the maximum size", () => {
  beforeEach(async () => {
    await startFleet("1");
    await begin("1", uuidOf(0), "first");
  });

  const longNames = Array.from(
    { length: 1_000 },
    (_, n) => `${"x".repeat(1_000)}${String(n).padStart(5, "0")}`,
  );

  test("are pulled in pages that fit into messages and statements", async () => {
    const payload = encodePayload(opsOf(envelope().placement, longNames));
    expect(payload.length).toBeGreaterThan(1_000_000);
    // A message has the canonical form of each name beside its value.
    expect(payload.length * 2 * LEASES).toBeGreaterThan(MESSAGE_BYTES);
    await plant("1", 1, LEASES, payload);
    expect(await runCron(env, Date.now())).toMatchObject({
      cellsPulled: 1,
      cellsFailed: 0,
      leasesUpserted: 1 + LEASES,
    });
    await expectD1ToMatch("1");
  });

  test("are pulled after small leases, in pages that are limited in bytes", async () => {
    const light = encodePayload(opsOf(envelope().placement, ["light"]));
    await plant("1", 1, 700, light);
    await plant("1", 701, LEASES, encodePayload(opsOf(envelope().placement, longNames)));
    expect(await runCron(env, Date.now())).toMatchObject({
      cellsPulled: 1,
      cellsFailed: 0,
      leasesUpserted: 701 + LEASES,
    });
    await expectD1ToMatch("1");
  });

  test("are pulled if they have many short names, which take the most bytes in a message", async () => {
    const short = Array.from({ length: 1_000 }, (_, n) => `s${n}`);
    await plant("1", 1, 150, encodePayload(opsOf(envelope().placement, short)));
    expect(await runCron(env, Date.now())).toMatchObject({
      cellsPulled: 1,
      cellsFailed: 0,
      leasesUpserted: 151,
    });
    await expectD1ToMatch("1");
  });

  test("fit into D1 with names of three bytes per character", async () => {
    const payload = JSON.stringify(
      Array.from({ length: 600 }, (_, n) => [0, 1, "語".repeat(950) + n, 0, 0, [2, "1"], [3, "1"]]),
    );
    expect(new TextEncoder().encode(payload).length).toBeGreaterThan(1_700_000);
    await plant("1", 1, 3, payload);
    expect(await runCron(env, Date.now())).toMatchObject({ cellsFailed: 0, leasesUpserted: 4 });
    await expectD1ToMatch("1");
  });
});

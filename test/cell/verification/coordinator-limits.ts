/** Runs at coordinators with short slots or low limits. */
import type { Suites } from "../../../src/cell/conformance/runner.ts";
import { createCell } from "../../../src/cell/cell.ts";
import { createClient, type Client, type ClientOptions } from "../../../src/client/client.ts";
import { FaultyFetch } from "../../../src/cell/conformance/faulty-fetch.ts";
import { startTestCoordinator, type TestCoordinator } from "../../../src/testing/index.ts";
import {
  verifiedTablesOf,
  type VerifiedCell,
} from "../../../src/cell/conformance/verification/verified-cell.ts";

const EMAILS = "RAILS_TABLE_EMAILS";

/** Several pages and segments, also with few rows. */
const smallSteps = { apply: true, maxShare: 1, pageRows: 10, rangeRows: 10, digestRanges: 1 } as const;

const clientOf = (
  { url, keys, fetch: direct }: TestCoordinator,
  fetch: ClientOptions["fetch"] = direct,
): Client => createClient({ url, key: keys.cell("1"), cell: "1", fetch });

/** The tested cell, at another coordinator. */
const cellAt = (one: VerifiedCell, coordinator: TestCoordinator, fetch?: ClientOptions["fetch"]) =>
  createCell({
    client: clientOf(coordinator, fetch),
    database: one.database(),
    tables: verifiedTablesOf(one.tables),
  });

export function coordinatorLimitsSuite({ test, expect }: Suites, current: () => VerifiedCell): void {
  test("[A3] a run that has lost its slot does not overwrite the cursor of another run", async () => {
    const one = current();
    const coordinator = await startTestCoordinator({
      variables: { LEASEHOLD_VERIFICATION_SLOT_MS: "1000" },
    });
    const theirs = { pass: "release", source: EMAILS, after: "777" } as const;
    let commits = 0;
    const network = new FaultyFetch(coordinator.fetch);
    network.before = async ({ operation }) => {
      if (operation !== "commit" || (commits += 1) !== 2) return;
      await coordinator.advance(1_001);
      const other = clientOf(coordinator);
      await other.verificationSlots.take("11111111-1111-4111-8111-111111111111");
      await one.changeCursor(theirs);
      await new Promise((resume) => setTimeout(resume, 300));
    };
    const cell = cellAt(one, coordinator, network.fetch);
    await one.addEmails(1, 30, "lost");
    const report = await cell.verify(smallSteps);
    expect(report.status).toBe("slot_lost");
    expect(await one.savedCursor()).toMatchObject(theirs);
    await coordinator.close();
  });

  test("[V5] a segment longer than the slot is saved, unless another run held the slot", async () => {
    const one = current();
    const coordinator = await startTestCoordinator({
      variables: { LEASEHOLD_VERIFICATION_SLOT_MS: "1000" },
    });
    const network = new FaultyFetch(coordinator.fetch);
    network.before = ({ operation }) =>
      new Promise((resume) => setTimeout(resume, operation === "commit" ? 1_010 : 0));
    const cell = cellAt(one, coordinator, network.fetch);
    await one.addEmails(1, 20, "slow");
    const report = await cell.verify(smallSteps);
    expect([report.status, report.counts.created]).toEqual(["done", 20]);
    await coordinator.close();
  });

  test("a name above the coordinator's lower limits is reported, and the others are claimed", async () => {
    const one = current();
    const variables = {
      LEASEHOLD_VALUE_BYTES: "64",
      LEASEHOLD_BATCH_OPS: "50",
      LEASEHOLD_DIGEST_RANGES: "2",
      LEASEHOLD_LOOKUP_BUCKETS: "3",
      LEASEHOLD_MAX_PAGE_ITEMS: "20",
    };
    const coordinator = await startTestCoordinator({ variables });
    const cell = cellAt(one, coordinator);
    await one.addEmails(1, 200, "low");
    await one.addEmails(201, 201, "x".repeat(64));
    const plan = await cell.verify();
    expect([plan.counts.missing, plan.counts.unnameable]).toEqual([200, 1]);
    for (const created of [200, 0]) {
      const report = await cell.verify({ apply: true, maxShare: 1, recentMs: 0, rangeRows: 10 });
      expect([report.status, report.counts.created, report.counts.unnameable]).toEqual(["done", created, 1]);
    }
    await coordinator.close();
  });
}

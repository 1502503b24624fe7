/** Runs at coordinators with short slots or low limits. */
import { expect, onTestFinished, test, vi } from "vitest";
import { createCell } from "../../../../../src/users/cell/cell.ts";
import { createClient, type Client, type ClientOptions } from "../../../../../src/users/client/client.ts";
import { patientCell, patientClient } from "../../../../../src/users/cell/conformance/target.ts";
import { FaultyFetch } from "../../../../../src/users/cell/conformance/faulty-fetch.ts";
import { startTestCoordinator, type TestCoordinator } from "../../../../../src/users/testing/index.ts";
import {
  verifiedTablesOf,
  type VerifiedCell,
} from "../../../../../src/users/cell/conformance/verification/verified-cell.ts";

const EMAILS = "RAILS_TABLE_EMAILS";

/** Several pages and segments, also with few rows. */
const smallSteps = { apply: true, maxShare: 1, pageRows: 10, rangeRows: 10, digestRanges: 1 } as const;

const SLOT_MS = 1_000;
const now = performance.now.bind(performance);
let passedMs = 0;
const variables = { LEASEHOLD_VERIFICATION_SLOT_MS: String(SLOT_MS) };

/** Passes more time than a slot lasts, by the clock of the coordinator and by that of the run. */
async function passSlot(coordinator: TestCoordinator): Promise<void> {
  passedMs += SLOT_MS + 1;
  vi.spyOn(performance, "now").mockImplementation(() => now() + passedMs);
  onTestFinished(() => void vi.restoreAllMocks());
  await coordinator.advance(SLOT_MS + 1);
}

const clientOf = (
  { url, keys, fetch: direct }: TestCoordinator,
  fetch: ClientOptions["fetch"] = direct,
): Client => createClient({ url, key: keys.cell("1"), cell: "1", fetch, ...patientClient });

/** The tested cell, at another coordinator. */
const cellAt = (one: VerifiedCell, coordinator: TestCoordinator, fetch?: ClientOptions["fetch"]) =>
  createCell({
    client: clientOf(coordinator, fetch),
    database: one.database(),
    tables: verifiedTablesOf(one.tables),
    ...patientCell,
  });

export function coordinatorLimitsSuite(current: () => VerifiedCell): void {
  test("[A3] a run that has lost its slot does not overwrite the cursor of another run", async () => {
    const one = current();
    const coordinator = await startTestCoordinator({ variables });
    const theirs = { pass: "release", source: EMAILS, after: "777" } as const;
    let commits = 0;
    const network = new FaultyFetch(coordinator.fetch);
    network.before = async ({ operation }) => {
      if (operation !== "commit" || (commits += 1) !== 2) return;
      await passSlot(coordinator);
      const other = clientOf(coordinator);
      await other.verificationSlots.take("11111111-1111-4111-8111-111111111111");
      await one.changeCursor(theirs);
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
    const coordinator = await startTestCoordinator({ variables });
    const network = new FaultyFetch(coordinator.fetch);
    network.before = async ({ operation }) => {
      if (operation === "commit") await passSlot(coordinator);
    };
    const cell = cellAt(one, coordinator, network.fetch);
    await one.addEmails(1, 20, "slow");
    const report = await cell.verify(smallSteps);
    expect([report.status, report.counts.created]).toEqual(["done", 20]);
    await coordinator.close();
  });

  test("a name above the coordinator's lower limits is reported, and the others are claimed", async () => {
    const one = current();
    const lowLimits = {
      LEASEHOLD_VALUE_BYTES: "64",
      LEASEHOLD_BATCH_OPS: "50",
      LEASEHOLD_DIGEST_RANGES: "2",
      LEASEHOLD_LOOKUP_BUCKETS: "3",
      LEASEHOLD_MAX_PAGE_ITEMS: "20",
    };
    const coordinator = await startTestCoordinator({ variables: lowLimits });
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

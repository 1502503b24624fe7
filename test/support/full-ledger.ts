/** Fills a ledger, and decides all of its leases. */
import { createHash } from "node:crypto";
import { expect } from "vitest";
import type { Limits } from "../../src/common/limits.ts";
import type { Cluster } from "./cluster.ts";
import { beginRequest, decideRequest } from "./ops.ts";

/** The hash of a batch is as short as that of the HTTP layer. */
export const startBegin = (c: Cluster, lease: string, names: string[]) =>
  c.ledger("1").object.begin({
    ...beginRequest(c.envelope, lease, names),
    payloadHash: createHash("sha256").update(names.join()).digest("hex"),
  });

export const small: Partial<Limits> = {
  ledgerBytes: 400_000,
  leaseBytes: 130_000,
  fences: 5,
  auditEntries: 1,
  reasonBytes: 500,
  outcomeRetentionS: 3_600,
};

/**
 * The database cannot grow beyond its limit, and one row more: SQLite writes the new row before it frees the
 * pages of the old one.
 */
export function limitPages(c: Cluster): void {
  const { ledgerBytes, leaseBytes } = c.limits;
  c.ledger("1").database.exec(
    `PRAGMA max_page_count = ${Math.floor((ledgerBytes + leaseBytes) / PAGE_BYTES)}`,
  );
}

export const PAGE_BYTES = 4_096;

/** Begins leases until the ledger is full. */
export async function fill(c: Cluster, names: (n: number) => string[]): Promise<string[]> {
  limitPages(c);
  const leases: string[] = [];
  for (let n = 0; ; n += 1) {
    const lease = c.uuid();
    const begun = await c.clock.runUntil(startBegin(c, lease, names(n)));
    if (begun.ok) leases.push(lease);
    else {
      expect(begun.refusal).toMatchObject({ code: "RESOURCE_EXHAUSTED", reason: "LEDGER_FULL" });
      return leases;
    }
  }
}

/** Writes all fences and decides all leases, with the longest reason. */
export async function decideAll(c: Cluster, leases: readonly string[]): Promise<void> {
  const { fences, reasonBytes, ledgerBytes } = c.limits;
  // An operator's decisions also have audit entries, which have a limit of their own.
  const longest = { reason: "r".repeat(reasonBytes) };
  const decide = (lease: string, outcome: "COMMITTED" | "ROLLED_BACK") =>
    c.ledger("1").object.decide({ ...decideRequest(c.envelope, lease, outcome), ...longest });
  const written = Array.from({ length: fences }, () => decide(c.uuid(), "ROLLED_BACK"));
  const isOk = ({ ok }: { ok: boolean }): boolean => ok;
  expect((await c.clock.runUntil(Promise.all(written))).every(isOk)).toBe(true);
  for (const [index, lease] of leases.entries()) {
    const outcome = index % 2 === 0 ? "COMMITTED" : "ROLLED_BACK";
    expect(await c.clock.runUntil(decide(lease, outcome))).toMatchObject({
      ok: true,
      value: { state: outcome },
    });
  }
  expect(c.ledger("1").halted).toBe(false);
  expect(c.ledger("1").sql.sizeBytes()).toBeLessThanOrEqual(ledgerBytes);
}

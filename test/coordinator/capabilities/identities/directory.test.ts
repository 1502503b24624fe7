/** Tests of how the directory keeps the identities, over node:sqlite (A4). */
import { expect, test } from "vitest";
import {
  noIdentities,
  type Identities,
} from "../../../../src/coordinator/capabilities/identities/identities.ts";
import type { Snapshot } from "../../../../src/coordinator/kernel/directory/messages.ts";
import type { Result } from "../../../../src/coordinator/kernel/refusal.ts";
import { no } from "../../../support/calls.ts";
import { Cluster } from "../../../support/cluster.ts";
import { LOST, saveDirectory } from "../../../support/go-back.ts";
import { operator } from "../../../support/ops.ts";
import { addCell } from "../cells/add-cell.ts";

const STALE = no("FAILED_PRECONDITION", { reason: "CONCURRENT_CHANGE" });

const identitiesOf = (cell: string | null, name = "forge"): Identities => ({
  issuers: [
    {
      name,
      issuer: "https://forge.example",
      audience: "leasehold",
      algorithms: ["RS256"],
      jwksUrl: "https://forge.example/keys",
      keys: null,
      rules: [{ claims: { sub: ["deployer"] }, role: cell === null ? "operator" : "cell", cell }],
    },
  ],
  authorities: [],
});

const valueOf = <T>(reply: Result<T>): T => {
  if (!reply.ok) throw new Error(reply.refusal.detail);
  return reply.value;
};

const change = (c: Cluster, position: number, identities: Identities) =>
  c.clock.runUntil(c.directory.object.changeIdentities({ ...c.envelope, position, identities }));
const snapshot = async (c: Cluster, identitiesPosition?: number): Promise<Snapshot> =>
  valueOf(
    await c.clock.runUntil(
      c.directory.object.snapshot({
        ...c.envelope,
        ...(identitiesPosition === undefined ? {} : { identitiesPosition }),
      }),
    ),
  );
const known = async (c: Cluster) => (await snapshot(c)).identities;

test("[A4] has none before the first change, and keeps what was changed", async () => {
  const c = await Cluster.start();
  expect(await known(c)).toEqual(noIdentities);
  const changed = valueOf(await change(c, 0, identitiesOf("1")));
  expect(changed).toEqual({ ...identitiesOf("1"), position: expect.any(Number) as number });
  c.directory.restart();
  expect(await known(c)).toEqual(changed);
  expect((await snapshot(c, changed.position)).identities).toBeNull();
  expect((await snapshot(c, 0)).identities).toEqual(changed);
});

test("[A4] a change is refused if the identities have changed since they were read", async () => {
  const c = await Cluster.start();
  const first = valueOf(await change(c, 0, identitiesOf("1")));
  expect(await change(c, 0, identitiesOf(null))).toEqual(STALE);
  expect(await known(c)).toEqual(first);
  // A change that arrives twice was carried out.
  expect(await change(c, 0, identitiesOf("1"))).toEqual({ ok: true, value: first });
  const second = valueOf(await change(c, first.position, identitiesOf(null)));
  expect(second.position).toBeGreaterThan(first.position);
});

test("[A4] a rule is refused whose cell is not registered, or removed", async () => {
  const c = await Cluster.start();
  expect(await change(c, 0, identitiesOf("9"))).toEqual(no("NOT_FOUND", { reason: "CELL_UNKNOWN" }));
  await addCell(c, "9");
  const { position } = valueOf(await change(c, 0, identitiesOf("9")));
  const removed = { ...c.envelope, cell: "9", removedAtMs: 1 };
  valueOf(await c.clock.runUntil(c.directory.object.removeCell(removed)));
  expect(await change(c, position, identitiesOf("9", "other"))).toMatchObject({ ok: false });
  expect(await change(c, position, identitiesOf(null))).toMatchObject({ ok: true });
});

test("[A4] [O1] each change has one audit entry, with names only", async () => {
  const c = await Cluster.start();
  const { position } = valueOf(await change(c, 0, identitiesOf("1")));
  await change(c, 0, identitiesOf("1"));
  await change(c, 0, identitiesOf(null));
  const page = valueOf(
    await c.clock.runUntil(c.directory.object.pullAudit({ ...c.envelope, copied: null, limit: 100 })),
  );
  const entries = page.entries.filter(({ action }) => action === "change_identities");
  expect(entries).toHaveLength(1);
  expect(JSON.parse(entries[0]?.after ?? "null")).toEqual({
    version: position,
    issuers: ["forge"],
    authorities: [],
  });
});

test("[A4] [H8] a directory that accepts a loss has no identities, whatever is left of them", async () => {
  const c = await Cluster.start();
  const { position } = valueOf(await change(c, 0, identitiesOf("1")));
  const restore = saveDirectory(c);
  const withdrawn = valueOf(await change(c, position, noIdentities));
  const { point } = await snapshot(c);
  restore();
  const seen = point ?? undefined;
  const lost = c.directory.object.snapshot({ ...c.envelope, ...(seen === undefined ? {} : { seen }) });
  expect(await c.clock.runUntil(lost)).toEqual(LOST);
  const page = { cells: [], keys: [], types: null, isLast: true, dryRun: false, isPlacementConfirmed: true };
  await c.clock.runUntil(c.directory.object.reconcile({ ...c.envelope, ...page, operator }));
  const after = await known(c);
  expect(after).toEqual({ ...noIdentities, position: expect.any(Number) as number });
  // So whoever has read the others reads these.
  expect(after?.position).toBeGreaterThan(withdrawn.position);
});

import { applyD1Migrations, runInDurableObject, type D1Migration } from "cloudflare:test";
import { env as bindings } from "cloudflare:workers";
import { expect } from "vitest";
import type { OperatorCall, Lease, Outcome } from "../../../src/coordinator/kernel/messages.ts";
import type { SettableState } from "../../../src/coordinator/capabilities/cells/messages.ts";
import type { Result } from "../../../src/coordinator/kernel/refusal.ts";
import { placementOf } from "../../../src/coordinator/kernel/placement.ts";
import { configOf, type Env } from "../../../src/coordinator/env.ts";
import { objectsOf } from "../../../src/coordinator/objects/objects.ts";
import { wallClock } from "../../../src/coordinator/runtime.ts";
import { beginRequest, decideRequest, operator, STAMP } from "../../support/ops.ts";
import { d1Tables } from "../../rigs/faults/d1-names.ts";
import { saveObject } from "../../support/workerd/save-object.ts";
import { restartObjects } from "../../support/workerd/restart.ts";
import { resetAll } from "../../support/workerd/reset-all.ts";
import { stubsOf } from "../../support/workerd/stubs.ts";

export const env = bindings as unknown as Env & { TEST_MIGRATIONS: D1Migration[] };

export const envelope = (): OperatorCall => ({
  ...STAMP,
  placement: placementOf(configOf(env).initialShards),
  operator,
});

/** What a listing of stale leases needs of a deployment. */
export const deploymentOf = (of: Env) => {
  const config = configOf(of);
  return { env: of, config, clock: wallClock, objects: objectsOf(of, config), envelope: envelope() };
};

/** The test's environment, with some bindings or variables replaced. */
export const envWith = (changes: Partial<Record<string, unknown>>): Env => ({ ...env, ...changes });

/** Resets everything to an empty deployment with these cells. */
export async function startFleet(...cells: string[]): Promise<void> {
  await resetAll(env);
  await applyD1Migrations(env.DB, env.TEST_MIGRATIONS);
  for (const cell of cells) await addCell(cell);
}

export async function emptyD1(): Promise<void> {
  await env.DB.batch(d1Tables.map((table) => env.DB.prepare(`DELETE FROM ${table}`)));
}

export async function addCell(cell: string): Promise<void> {
  const message = {
    ...envelope(),
    cell,
    name: `Cell ${cell}`,
    address: `https://cell-${cell}.example`,
    locationHint: null,
  };
  valueOf(await env.DIRECTORY.getByName("directory").addCell(message));
}

export const ledgerOf = (cell: string) => stubsOf(env).ledger(cell);

export async function begin(cell: string, lease: string, ...names: string[]): Promise<Lease> {
  return valueOf(await ledgerOf(cell).begin(beginRequest(envelope(), lease, names))).lease;
}

export async function decide(cell: string, lease: string, outcome: Outcome): Promise<Lease> {
  return valueOf(await ledgerOf(cell).decide(decideRequest(envelope(), lease, outcome)));
}

export async function setState(cell: string, state: SettableState): Promise<void> {
  const ledger = ledgerOf(cell);
  const { stateVersion } = valueOf(await ledger.status(envelope()));
  valueOf(await ledger.setState({ ...envelope(), state, stateVersion }));
}

/** Revokes a key of the cell, at its ledger. */
export async function revoke(cell: string, keyId: string): Promise<void> {
  valueOf(await ledgerOf(cell).revoke({ ...envelope(), keyId, expiresAtMs: Date.now() + 1e9 }));
}

/** Returns a function that brings a ledger back to its present state. It restarts all objects. */
export async function saveLedger(cell: string): Promise<() => Promise<void>> {
  const restore = await saveObject(ledgerOf(cell));
  return async () => {
    await restore();
    await restartObjects(env, cell);
  };
}

export function valueOf<T>(reply: Result<T>): T {
  if (!reply.ok) throw new Error(`${reply.refusal.code}: ${reply.refusal.detail}`);
  return reply.value;
}

/** A lease id that is easy to read in a failed assertion. */
export const uuidOf = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;

export interface FleetLease {
  uuid: string;
  created_position: number;
  created_at_ms: number;
  creates: number;
}

const COLUMNS = "created_position, created_at_ms, creates, destroys, replaces, missing";

export async function leasesInD1(cell: string): Promise<FleetLease[]> {
  return (
    await env.DB.prepare(
      `SELECT uuid, ${COLUMNS} FROM open_leases WHERE cell_id = ? ORDER BY created_position`,
    )
      .bind(cell)
      .all<FleetLease>()
  ).results;
}

export interface LedgerLease extends FleetLease {
  state: string;
}

/** The leases of a ledger, also decided ones, without fences that have no begin. */
export function leasesInLedger(cell: string): Promise<LedgerLease[]> {
  return runInDurableObject(
    ledgerOf(cell),
    (_, state) =>
      state.storage.sql
        .exec(
          `SELECT lease AS uuid, state, ${COLUMNS} FROM lease WHERE decided < 2
            ORDER BY created_position`,
        )
        .toArray() as unknown as LedgerLease[],
  );
}

/** Expects D1 to have exactly the ledger's open leases. */
export async function expectD1ToMatch(cell: string): Promise<void> {
  const open = (await leasesInLedger(cell)).filter(({ state }) => state === "GRANTED");
  expect(open).toMatchObject(await leasesInD1(cell));
  expect(open).toHaveLength((await leasesInD1(cell)).length);
}

export async function countRows(table: string, where = "true"): Promise<number> {
  return (await env.DB.prepare(`SELECT count(*) AS n FROM ${table} WHERE ${where}`).first<number>("n")) ?? 0;
}

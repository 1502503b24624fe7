import type { Bucket, Client } from "../../users/client/index.ts";
import { isLeaseholdError } from "../../users/client/index.ts";
import type { Batch } from "../../users/client/api-types.ts";
import type { Io } from "../framework/io.ts";
import type { Claim } from "./changed-claims.ts";
import { leaseIdOf } from "./lease-id.ts";
import type { Backup } from "./read-backup.ts";
import { untilAnswered } from "./deployment-cells.ts";

type Create = NonNullable<Batch["creates"]>[number];

interface CellBatch {
  cell: string;
  creates: Create[];
}

/** What has become of the claims of a backup. */
export interface RestoredClaims {
  /** The cells have them now. */
  restored: number;
  /** Names that the same cell had already, from an earlier run or from its verification. */
  present: number;
  /** Names that another cell has. */
  lost: number;
  /** The first of these names. */
  lost_names: { cell_id: string; bucket: Bucket }[];
}

/** Both are far below what a begin may have by default. */
export const CLAIMS_PER_LEASE = 500;
const CHARS_PER_LEASE = 300_000;
const LEASES_AT_ONCE = 4;
const PROGRESS_EVERY = 10_000;
const MAX_LISTED = 100;

/**
 * Claims every name of a backup for its cell. The id of each lease is made from what it claims, so a run that
 * repeats another one finds the same leases (B2).
 */
export async function restoreClaims(
  io: Io,
  client: Client,
  backup: Backup,
  reason: string,
): Promise<RestoredClaims> {
  const done: RestoredClaims = { restored: 0, present: 0, lost: 0, lost_names: [] };
  let told = 0;
  let waiting: CellBatch[] = [];
  const carryOut = async (): Promise<void> => {
    await Promise.all(waiting.map((batch) => restoreBatch(io, client, backup, batch, reason, done)));
    waiting = [];
    const count = done.restored + done.present + done.lost;
    if (count - told < PROGRESS_EVERY) return;
    told = count;
    await io.err.write(`${count} claims done\n`);
  };
  for await (const batch of batchesOf(backup.claims())) {
    waiting.push(batch);
    if (waiting.length === LEASES_AT_ONCE) await carryOut();
  }
  await carryOut();
  return done;
}

async function* batchesOf(claims: AsyncIterable<Claim>): AsyncGenerator<CellBatch, void, undefined> {
  let batch: CellBatch | undefined;
  let chars = 0;
  for await (const { cell, bucket, subject, source, scope } of claims) {
    const create = { bucket, subject, source, ...(scope === undefined ? {} : { scope }) };
    const length = JSON.stringify(create).length;
    const isFull =
      batch !== undefined &&
      (batch.cell !== cell || batch.creates.length === CLAIMS_PER_LEASE || chars + length > CHARS_PER_LEASE);
    if (batch !== undefined && isFull) {
      yield batch;
      batch = undefined;
    }
    batch ??= { cell, creates: [] };
    if (batch.creates.length === 0) chars = 0;
    chars += length;
    batch.creates.push(create);
  }
  if (batch !== undefined) yield batch;
}

async function restoreBatch(
  io: Io,
  client: Client,
  { found }: Backup,
  { cell, creates }: CellBatch,
  reason: string,
  done: RestoredClaims,
): Promise<void> {
  const { leases } = client.forCell(cell);
  let left = creates;
  for (let attempt = 0; left.length > 0;) {
    const uuid = leaseIdOf([found.sha256, cell, attempt, left]);
    const batch = { creates: left, verification: true };
    try {
      await untilAnswered(io, async () => {
        const { state } = await leases.begin(batch, { uuid });
        if (state === "GRANTED") await leases.commit(uuid, { reason });
      });
      done.restored += left.length;
      return;
    } catch (error) {
      if (!isLeaseholdError(error)) throw error;
      const taken = error.conflicts.filter(({ kind }) => kind === "taken");
      // Somebody has rolled the lease back, as a reconciliation does with a lease that it does not know.
      if (error.reason === "LEASE_ROLLED_BACK") attempt += 1;
      else if (taken.length === 0) throw error;
      const isTaken = new Set(taken.map(({ index }) => index));
      for (const { owner, bucket } of taken) {
        if (owner === "self") done.present += 1;
        else {
          done.lost += 1;
          if (done.lost_names.length < MAX_LISTED) done.lost_names.push({ cell_id: cell, bucket });
        }
      }
      left = left.filter((_, index) => !isTaken.has(index));
    }
  }
}

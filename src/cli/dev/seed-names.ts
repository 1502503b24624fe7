import { readFile, stat } from "node:fs/promises";
import type { Batch, Bucket, Client } from "../../users/client/index.ts";
import { messageOf, usageError } from "../framework/command-error.ts";
import { DEV_CELLS } from "./start-server.ts";

/** A name that a cell is to have. */
interface Seed {
  cell: string;
  op: NonNullable<Batch["creates"]>[number];
}

export interface Seeded {
  /** The names that were free until now. */
  claimed: number;
  /** Those that their cells had already, as at a second start. */
  kept: number;
  first: Bucket | undefined;
}

const MAX_SEEDS = 10_000;

const MAX_FILE_BYTES = 8_388_608;

/** As many names as one lookup takes. */
const AT_ONCE = 100;

/**
 * Reads `--seed`: a number of names, or a file with one JSON document per line, as `leasehold claims export`
 * prints them.
 *
 * @throws a usage error that names the line and the field
 */
export async function readSeeds(given: string, client: Client): Promise<Seed[]> {
  const { types } = await client.types.get();
  const defaults = {
    subject: firstOf(types.subject_types, "USER"),
    source: firstOf(types.source_types, "RAILS_TABLE_USERS"),
  };
  if (/^\d+$/.test(given)) {
    const count = Number(given);
    if (count < 1 || count > MAX_SEEDS) throw usageError(`--seed must be from 1 to ${MAX_SEEDS}, or a file`);
    const type = firstOf(types.bucket_types, "USERNAMES");
    return Array.from({ length: count }, (_, at) => {
      const value = `seed-${String(at + 1).padStart(5, "0")}`;
      return seedOf({ bucket: { type, value } }, at, defaults);
    });
  }
  const lines = (await readLines(given)).filter(({ text }) => text.trim() !== "");
  if (lines.length === 0) throw usageError(`--seed: ${given} has no names`);
  if (lines.length > MAX_SEEDS) throw usageError(`--seed: ${given} has more than ${MAX_SEEDS} names`);
  return lines.map(({ text, number }, at) => {
    try {
      return seedOf(JSON.parse(text), at, defaults);
    } catch (error) {
      throw usageError(`--seed: line ${number} of ${given}: ${messageOf(error)}`);
    }
  });
}

async function readLines(file: string): Promise<{ text: string; number: number }[]> {
  try {
    if ((await stat(file)).size > MAX_FILE_BYTES)
      throw new Error(`it is larger than ${MAX_FILE_BYTES} bytes`);
    return (await readFile(file, "utf8")).split("\n").map((text, at) => ({ text, number: at + 1 }));
  } catch (error) {
    throw usageError(`--seed must be a number, or a file that can be read: ${messageOf(error)}`);
  }
}

const firstOf = (declared: object, preferred: string): string =>
  Object.hasOwn(declared, preferred) ? preferred : (Object.keys(declared)[0] ?? preferred);

/** Cells take turns, unless the name says whose it is. Rows are numbered. */
function seedOf(given: unknown, at: number, types: { subject: string; source: string }): Seed {
  if (typeof given !== "object" || given === null) throw new Error("it must be a JSON object");
  const id = String(at + 1);
  const {
    bucket,
    cell_id: cell = DEV_CELLS[at % DEV_CELLS.length],
    subject = { type: types.subject, id },
    source = { type: types.source, id },
  } = given as Record<string, unknown>;
  const { type, value } = (bucket ?? {}) as Record<string, unknown>;
  if (typeof type !== "string" || typeof value !== "string")
    throw new Error("`bucket` must be an object with `type` and `value`");
  if (typeof cell !== "string" || !DEV_CELLS.includes(cell))
    throw new Error(`\`cell_id\` must be one of "${DEV_CELLS.join('", "')}"`);
  for (const [field, row] of Object.entries({ subject, source }))
    if (!isRow(row)) throw new Error(`\`${field}\` must be an object with \`type\` and \`id\``);
  return { cell, op: { bucket: { type, value }, subject, source } as Seed["op"] };
}

function isRow(given: unknown): boolean {
  const { type, id } = (given ?? {}) as Record<string, unknown>;
  return typeof type === "string" && (typeof id === "string" || typeof id === "number");
}

/** Claims the names that their cells do not have yet, so a second start with the same seed works. */
export async function seedNames(
  seeds: readonly Seed[],
  clientOf: (cell: string) => Client,
  signal: AbortSignal,
): Promise<Seeded> {
  const seeded: Seeded = { claimed: 0, kept: 0, first: seeds[0]?.op.bucket };
  for (const cell of DEV_CELLS) {
    const { records, leases } = clientOf(cell);
    const own = seeds.filter((seed) => seed.cell === cell).map(({ op }) => op);
    for (let at = 0; at < own.length; at += AT_ONCE) {
      signal.throwIfAborted();
      const some = own.slice(at, at + AT_ONCE);
      const found = await records.lookup(some.map(({ bucket }) => bucket));
      const creates = some.filter((_, index) => found[index]?.record?.cell_id !== cell);
      seeded.kept += some.length - creates.length;
      if (creates.length === 0) continue;
      const { uuid } = await leases.begin({ creates });
      await leases.commit(uuid);
      seeded.claimed += creates.length;
    }
  }
  return seeded;
}

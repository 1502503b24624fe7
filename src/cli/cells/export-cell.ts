import { open, rm, type FileHandle } from "node:fs/promises";
import type { Client, Source } from "../../client/index.ts";
import type { ExportedClaims, Record } from "../../client/api-types.ts";
import { canonicalize } from "../../core/canonical/canonicalize.ts";
import { DigestSum, digestWordsOf } from "../../core/digest.ts";
import { typesOf } from "../../core/types/document.ts";
import { Types } from "../../core/types/types.ts";
import { toJson } from "../../text/escape.ts";
import { CommandError, messageOf, usageError } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import { exitCodes } from "../framework/exit-codes.ts";

const PROGRESS_EVERY = 10_000;
/** Lines are written together, because each write of a file takes a turn of the event loop. */
const LINES_AT_ONCE = 500;
const MAX_BYTES = 1_024;

/**
 * Writes all claims of a cell to a new file, one per line, that only its owner can read. Returns what the
 * coordinator compares with the cell's claims. The digests are those of the lines that were written.
 */
export async function exportCell(
  { io }: Context,
  client: Client,
  cell: string,
  sources: readonly Source["type"][],
  path: string,
): Promise<ExportedClaims[]> {
  const types = await readTypes(client);
  const file = await create(path);
  try {
    const exported: ExportedClaims[] = [];
    let count = 0;
    for (const source of sources) {
      const sum = new DigestSum();
      let lines = "";
      const claims = client.forCell(cell).records.export({ sourceType: source, signal: io.signal });
      for await (const claim of claims) {
        sum.add(wordsOf(types, claim));
        lines += `${toJson(claim)}\n`;
        count += 1;
        if (count % LINES_AT_ONCE === 0) {
          await file.write(lines);
          lines = "";
        }
        if (count % PROGRESS_EVERY === 0) await io.err.write(`${count} claims exported\n`);
      }
      await file.write(lines);
      exported.push({ source_type: source, count: sum.count, hash: sum.hash });
    }
    // The removal starts only once the export cannot be lost.
    await file.sync();
    await io.err.write(`${count} claims exported to ${path}\n`);
    return exported;
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  } finally {
    await file.close();
  }
}

async function readTypes(client: Client): Promise<Types> {
  const entries = typesOf((await client.types.get()).types);
  if (!entries.ok) throw new CommandError(entries.refusal.detail, exitCodes.failed);
  return new Types(entries.value);
}

/** Overwrites nothing. */
async function create(path: string): Promise<FileHandle> {
  try {
    return await open(path, "wx", 0o600);
  } catch (error) {
    throw usageError(`--export: ${path} cannot be created: ${messageOf(error)}`);
  }
}

function wordsOf(types: Types, { bucket, subject, source }: Record) {
  const entry = types.named("bucket", bucket.type);
  const made = entry?.rule ? canonicalize(entry.rule, bucket.value, MAX_BYTES) : undefined;
  const [subjectType, sourceType] = [
    types.named("subject", subject.type),
    types.named("source", source.type),
  ];
  if (entry === undefined || made?.ok !== true || subjectType === undefined || sourceType === undefined)
    throw new CommandError(
      `the claim ${JSON.stringify(bucket)} has a type that is not declared`,
      exitCodes.failed,
    );
  return digestWordsOf({
    type: entry.number,
    canonical: made.canonical,
    value: bucket.value,
    subject: { type: subjectType.number, id: subject.id },
    source: { type: sourceType.number, id: source.id },
  });
}

import { existsSync } from "node:fs";
import { open, rm, type FileHandle } from "node:fs/promises";
import { dirname } from "node:path";
import type { Client, Source } from "../../users/client/index.ts";
import type { ExportedClaims } from "../../users/client/api-types.ts";
import { canonicalize } from "../../common/canonical/canonicalize.ts";
import { DigestSum, digestWordsOf } from "../../common/digest.ts";
import { typesOf } from "../../common/types/document.ts";
import { Types } from "../../common/types/types.ts";
import { toJson } from "../../common/text/escape.ts";
import { CommandError, messageOf, usageError, exitCodes } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";

const PROGRESS_EVERY = 10_000;
/** Lines are written together, because each write of a file takes a turn of the event loop. */
const LINES_AT_ONCE = 500;
const MAX_BYTES = 1_024;

/**
 * Writes all claims of a cell to a file, one per line, that only its owner can read. A file that exists is
 * not written: it is the export of an earlier run. Returns what the coordinator compares with the cell's
 * claims, as it is read back from the file.
 */
export async function exportCell(
  { io }: Context,
  client: Client,
  cell: string,
  sources: readonly Source["type"][],
  path: string,
): Promise<ExportedClaims[]> {
  const types = await readTypes(client);
  if (existsSync(path)) {
    await io.err.write(`${path} exists, and is used as it is.\n`);
    return readExport(types, path);
  }
  const file = await create(path);
  try {
    let count = 0;
    let lines = "";
    for (const source of sources) {
      const claims = client.forCell(cell).records.export({ sourceType: source, signal: io.signal });
      for await (const claim of claims) {
        lines += `${toJson(claim)}\n`;
        count += 1;
        if (count % LINES_AT_ONCE === 0) {
          // `write` may write a part only.
          await file.appendFile(lines);
          lines = "";
        }
        if (count % PROGRESS_EVERY === 0) await io.err.write(`${count} claims exported\n`);
      }
    }
    await file.appendFile(lines);
    // The removal starts only once the export cannot be lost.
    await file.sync();
    await syncFolder(dirname(path));
    const exported = await readExport(types, path);
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

/** Makes the name of a new file durable. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** Returns the digests of the claims that a file has. */
async function readExport(types: Types, path: string): Promise<ExportedClaims[]> {
  const sums = new Map<Source["type"], DigestSum>();
  const file = await open(path, "r").catch((error: unknown) => {
    throw usageError(`--export: ${path} cannot be read: ${messageOf(error)}`);
  });
  let number = 0;
  try {
    for await (const line of file.readLines()) {
      number += 1;
      const claim = parseClaim(line);
      if (claim === undefined)
        throw new CommandError(
          `--export: line ${number} of ${path} is no claim, so the file is no export. Nothing was started. ` +
            "Name another file",
          exitCodes.conflict,
        );
      const sum = sums.get(claim.source.type) ?? new DigestSum();
      sums.set(claim.source.type, sum);
      sum.add(wordsOf(types, claim));
    }
  } finally {
    await file.close();
  }
  return [...sums].map(([source, { count, hash }]) => ({ source_type: source, count, hash }));
}

/** The facts of a claim that its digest covers. */
interface ExportedClaim {
  bucket: { type: string; value: string };
  subject: { type: string; id: string };
  source: { type: Source["type"]; id: string };
  scope?: string;
}

function parseClaim(line: string): ExportedClaim | undefined {
  try {
    const { bucket, subject, source, scope } = JSON.parse(line) as ExportedClaim;
    const facts = [bucket.type, bucket.value, subject.type, subject.id, source.type, source.id, scope ?? ""];
    const isClaim = facts.every((fact) => typeof fact === "string");
    return isClaim ? { bucket, subject, source, ...(scope === undefined ? {} : { scope }) } : undefined;
  } catch {
    return undefined;
  }
}

function wordsOf(types: Types, { bucket, subject, source, scope }: ExportedClaim) {
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
    scope: scope ?? null,
  });
}

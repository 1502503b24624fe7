import { open, type FileHandle } from "node:fs/promises";
import { toJson } from "../../common/text/escape.ts";
import { sectionOf } from "./changed-claims.ts";
import { fileLines } from "./file-lines.ts";
import { headerOf, parseLine, type Header, type Line } from "./format.ts";

/** Lines are written together, because each write of a file takes a turn of the event loop. */
const BUFFERED_CHARS = 262_144;

/** How far a backup has got. */
export interface Progress {
  header: Header;
  /** Every change up to it is in the file. */
  checkpoint: string;
  /** The last source id of each section whose records are in the file; null: all of them. */
  records: Map<string, string | null>;
  /** The cells whose leases are in the file. */
  leases: Set<string>;
}

/** Writes the lines of a backup. */
export class BackupWriter {
  readonly #file: FileHandle;
  #buffered = "";

  constructor(file: FileHandle) {
    this.#file = file;
  }

  async append(line: Line): Promise<void> {
    this.#buffered += `${toJson(line)}\n`;
    if (this.#buffered.length >= BUFFERED_CHARS) await this.flush();
  }

  async flush(): Promise<void> {
    const text = this.#buffered;
    this.#buffered = "";
    // `write` may write a part only.
    if (text !== "") await this.#file.appendFile(text);
  }

  /** All lines are durable afterwards. */
  async sync(): Promise<void> {
    await this.flush();
    await this.#file.sync();
  }

  async close(): Promise<void> {
    await this.#file.close();
  }
}

/** Names are private, so only the owner can read the file. */
export async function createWriter(path: string, flags: "wx" | "w"): Promise<BackupWriter> {
  const file = await open(path, flags, 0o600);
  // A file that exists keeps its mode.
  await file.chmod(0o600);
  return new BackupWriter(file);
}

/**
 * Opens an unfinished file, and drops what follows its last cursor. Undefined if there is no file, or if
 * nothing in it can be continued.
 */
export async function reopenWriter(
  path: string,
): Promise<{ writer: BackupWriter; progress: Progress } | undefined> {
  let progress: Progress | undefined;
  let size = 0;
  try {
    for await (const { bytes, number, end } of fileLines(path)) {
      const line = parseLine(bytes.toString("utf8"), number);
      if (progress === undefined) {
        const header = headerOf(line);
        progress = { header, checkpoint: header.checkpoint, records: new Map(), leases: new Set() };
      } else if (!noteCursor(progress, line)) continue;
      size = end;
    }
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
  }
  if (progress === undefined) return undefined;
  const file = await open(path, "a");
  await file.chmod(0o600);
  await file.truncate(size);
  return { writer: new BackupWriter(file), progress };
}

/** Returns whether the line is a cursor. */
function noteCursor(progress: Progress, line: Line): boolean {
  if ("records_through" in line) {
    const { cell_id: cell, source_type: sourceType, source_id: id } = line.records_through;
    progress.records.set(sectionOf(cell, sourceType), id);
  } else if ("leases_through" in line) progress.leases.add(line.leases_through.cell_id);
  else if ("changes_through" in line) progress.checkpoint = line.changes_through;
  else return false;
  return true;
}

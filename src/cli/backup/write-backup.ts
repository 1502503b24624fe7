import type { ChangesPage, Client } from "../../users/client/index.ts";
import { isLeaseholdError } from "../../users/client/index.ts";
import { CommandError, exitCodes } from "../framework/command-error.ts";
import type { Io } from "../framework/io.ts";
import type { BackupWriter, Progress } from "./backup-writer.ts";
import { sectionOf } from "./changed-claims.ts";
import { cellsOf, otherCell, untilAnswered } from "./deployment-cells.ts";
import { FORMAT_VERSION, type Header } from "./format.ts";
import { readBackup, type Backup } from "./read-backup.ts";

const RECORDS_PER_CURSOR = 200;
/**
 * Changes are read meanwhile, because a shard keeps only its last 16,384 transactions, and an export may take
 * longer than these.
 */
const RECORDS_PER_DRAIN = 10_000;
const PAGE_SIZE = 1_000;
const PAUSE_MS = 1_000;

/** Reads what the first line of a new backup says. */
export async function headerFor(io: Io, client: Client): Promise<Header> {
  // Without a cell, there are no shards.
  if ((await cellsOf(io, client)).length === 0)
    throw new CommandError("the deployment has no cells, so there is nothing to back up", exitCodes.conflict);
  const { checkpoint } = await firstPage(io, client);
  const cells = await cellsOf(io, client);
  const { types } = await untilAnswered(io, () => client.types.get());
  return {
    leasehold_backup: FORMAT_VERSION,
    created_at: new Date(io.now()).toISOString(),
    checkpoint,
    cells: cells
      .filter(({ removed_at: removedAt }) => removedAt === null)
      .map(({ cell_id, created_at }) => ({ cell_id, created_at })),
    source_types: Object.keys(types.source_types),
  };
}

/** The position of every shard: without one of them, a backup would need its changes from the beginning. */
async function firstPage(io: Io, client: Client): Promise<ChangesPage> {
  for (;;) {
    const page = await untilAnswered(io, () => client.changes.page());
    const { unavailable } = page;
    if (unavailable.length === 0) return page;
    await io.err.write(`Waiting for the shards ${unavailable.join(", ")}.\n`);
    await io.wait(PAUSE_MS);
  }
}

/**
 * Writes everything that the file still lacks, except its last line. The records are those of different
 * moments. The changes that follow make them the claims of one (F6).
 */
export class BackupRun {
  readonly #io: Io;
  readonly #client: Client;
  readonly #writer: BackupWriter;
  readonly #progress: Progress;
  #records = 0;
  #recordsAtDrain = 0;

  constructor(io: Io, client: Client, writer: BackupWriter, progress: Progress) {
    this.#io = io;
    this.#client = client;
    this.#writer = writer;
    this.#progress = progress;
  }

  async write(): Promise<void> {
    const { source_types: sourceTypes } = this.#progress.header;
    const cells = this.#progress.header.cells.map(({ cell_id: id }) => id);
    await this.#requireSameDeployment();
    // If changes are missing, nothing else is worth while.
    await this.#drain();
    for (const cell of cells)
      for (const sourceType of sourceTypes) await this.#writeRecords(cell, sourceType);
    for (const cell of cells) await this.#writeLeases(cell);
    while (!(await this.#drain())) await this.#io.wait(PAUSE_MS);
    await this.#writeSettings();
    await this.#writer.flush();
  }

  /** A file that is continued must not get the claims of another deployment. */
  async #requireSameDeployment(): Promise<void> {
    const other = await otherCell(this.#io, this.#client, this.#progress.header);
    if (other !== undefined)
      throw new CommandError(
        `cell ${other.cell_id} was not registered at ${other.created_at}, as the backup says: this is ` +
          "another deployment",
        exitCodes.conflict,
      );
  }

  async #writeRecords(cell: string, sourceType: string): Promise<void> {
    const after = this.#progress.records.get(sectionOf(cell, sourceType));
    if (after === null) return;
    const { signal, err } = this.#io;
    const records = this.#client
      .forCell(cell)
      .records.export({ sourceType: sourceType as never, sourceIdGt: after, signal });
    const cursor = (id: string | null) =>
      this.#writer.append({ records_through: { cell_id: cell, source_type: sourceType, source_id: id } });
    let sinceCursor = 0;
    // Another loop over the same export continues behind the last record.
    await untilAnswered(this.#io, async () => {
      for await (const record of records) {
        await this.#writer.append({ record });
        this.#records += 1;
        sinceCursor += 1;
        // A cursor stands only behind all records of a source id, so that no record comes twice.
        if (sinceCursor < RECORDS_PER_CURSOR || records.cursor !== record.source.id) continue;
        sinceCursor = 0;
        await cursor(record.source.id);
        if (this.#records - this.#recordsAtDrain < RECORDS_PER_DRAIN) continue;
        await err.write(`${this.#records} records, up to cell ${cell}, ${sourceType}\n`);
        await this.#drain();
      }
    });
    await cursor(null);
  }

  async #writeLeases(cell: string): Promise<void> {
    if (this.#progress.leases.has(cell)) return;
    const { leases } = this.#client.forCell(cell);
    const listed = await untilAnswered(this.#io, () => leases.list({ pageSize: PAGE_SIZE }).all());
    for (const { uuid } of listed) {
      // A list has counts instead of names.
      const lease = await untilAnswered(this.#io, () => leases.get(uuid)).catch(undefinedIfUnknown);
      if (lease?.state === "GRANTED") await this.#writer.append({ lease });
    }
    await this.#writer.append({ leases_through: { cell_id: cell } });
    await this.#drain();
  }

  /** Reads the changes up to now. Returns false if a shard could not be read. */
  async #drain(): Promise<boolean> {
    this.#recordsAtDrain = this.#records;
    for (;;) {
      const after = this.#progress.checkpoint;
      const { changes, checkpoint, hasMore, unavailable } = await untilAnswered(this.#io, () =>
        this.#client.changes.page({ after, pageSize: PAGE_SIZE }),
      ).catch(tooLate);
      for (const change of changes) await this.#writer.append({ change });
      if (checkpoint !== after) await this.#writer.append({ changes_through: checkpoint });
      this.#progress.checkpoint = checkpoint;
      if (!hasMore) return unavailable.length === 0;
    }
  }

  /** Types and cells come last: every claim has one of them, also those that are new. */
  async #writeSettings(): Promise<void> {
    const { types } = await untilAnswered(this.#io, () => this.#client.types.get());
    await this.#writer.append({ types });
    for (const cell of await cellsOf(this.#io, this.#client)) await this.#writer.append({ cell });
    const { issuers, authorities } = await untilAnswered(this.#io, () => this.#client.identities.get());
    await this.#writer.append({ identities: { issuers, authorities } });
    const keys = await untilAnswered(this.#io, () => this.#client.keys.list({ pageSize: PAGE_SIZE }).all());
    for (const key of keys) if (key.revoked_at !== null) await this.#writer.append({ revoked_key: key });
  }
}

/** Writes the last line, after which the file is complete and durable. Returns what it has. */
export async function finish(writer: BackupWriter, path: string): Promise<Backup> {
  const backup = await readBackup(path);
  const claims = await backup.digests();
  await writer.append({ end: { ...backup.found, claims } });
  await writer.sync();
  return readBackup(path);
}

function undefinedIfUnknown(error: unknown): undefined {
  if (!(isLeaseholdError(error) && error.code === "NOT_FOUND")) throw error;
}

function tooLate(error: unknown): never {
  if (!(isLeaseholdError(error) && error.reason === "CHANGES_PRUNED")) throw error;
  throw new CommandError(
    "a shard no longer has all changes since the backup was interrupted, or has accepted a loss, so this " +
      "backup cannot be completed: begin a new one",
    exitCodes.conflict,
  );
}

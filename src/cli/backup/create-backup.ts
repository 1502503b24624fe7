import { existsSync } from "node:fs";
import { open, rename } from "node:fs/promises";
import { dirname } from "node:path";
import { CommandError, messageOf, usageError, exitCodes } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import { failureOf } from "../framework/failure.ts";
import type { Result } from "../output/result.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import { createWriter, reopenWriter, type BackupWriter, type Progress } from "./backup-writer.ts";
import { compare } from "./compare.ts";
import { DamagedBackupError } from "./format.ts";
import { readBackup } from "./read-backup.ts";
import { backupResult } from "./verify-backup.ts";
import { BackupRun, finish, headerFor } from "./write-backup.ts";

interface CreateOptions {
  resume?: boolean;
  force?: boolean;
  verify?: boolean;
}

const PRIVATE = "The file has names: only you can read it. Keep it as private as the databases of the cells.";

/** Writes a backup, then reads it back. An interrupted run leaves a file that `--resume` continues. */
export async function createBackup(context: Context, path: string, options: CreateOptions): Promise<Result> {
  const partial = `${path}.partial`;
  const { io } = context;
  const client = await context.client();
  if (existsSync(path) && options.force !== true)
    throw usageError(`FILE: ${path} exists: give another name, or --force to replace it`);
  const { writer, progress } = await openPartial(context, partial, path, options);
  try {
    await new BackupRun(io, client, writer, progress).write();
    await finish(writer, partial);
    await rename(partial, path);
    await syncFolder(dirname(path));
  } catch (error) {
    await writer.flush().catch(() => undefined);
    throw interrupted(context, path, error);
  } finally {
    await writer.close();
  }
  const backup = await readBackup(path);
  await backup.check();
  const comparison = options.verify === false ? undefined : await compare(io, client, backup);
  const result = backupResult(backup, comparison);
  // The file is a backup all the same: leases are open, or names change, while it is compared.
  const exitCode = result.exitCode === exitCodes.failed ? exitCodes.ok : result.exitCode;
  return {
    ...result,
    ...(exitCode === undefined ? {} : { exitCode }),
    notes: [...(result.notes ?? []), PRIVATE],
  };
}

async function openPartial(
  context: Context,
  partial: string,
  path: string,
  { resume, force }: CreateOptions,
): Promise<{ writer: BackupWriter; progress: Progress }> {
  const { io } = context;
  if (resume === true) {
    const opened = await reopenWriter(partial);
    if (opened !== undefined) return opened;
    await io.err.write(`${partial} has nothing to continue, so this is a new backup.\n`);
  } else if (existsSync(partial) && force !== true)
    throw usageError(
      `${partial} has a backup that was interrupted: give --resume, or --force for a new one`,
      [`${commandLine("backup", "create", path)} --resume`],
    );
  const header = await headerFor(io, await context.client());
  const writer = await createWriter(partial, resume === true || force === true ? "w" : "wx").catch(
    (error: unknown) => {
      throw usageError(`FILE: ${partial} cannot be created: ${messageOf(error)}`);
    },
  );
  await writer.append(header);
  return {
    writer,
    progress: { header, checkpoint: header.checkpoint, records: new Map(), leases: new Set() },
  };
}

/** Makes the name of a file durable. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

function interrupted({ io }: Context, path: string, error: unknown): CommandError {
  const { message = messageOf(error), exitCode } = failureOf(error, io.signal.aborted);
  const isFinal = exitCode === exitCodes.conflict || error instanceof DamagedBackupError;
  return new CommandError(
    `the backup stopped: ${message.replace(/\.$/, "")}. ${path}.partial has what was read`,
    exitCode === exitCodes.ok ? exitCodes.failed : exitCode,
    [`${commandLine("backup", "create", path)} ${isFinal ? "--force" : "--resume"}`],
  );
}

import { join } from "node:path";
import { makeFolder } from "../workerd/durable-file.ts";
import { openState } from "../workerd/state-file.ts";
import { markUse, UntrustedCopy } from "./use-mark.ts";

export interface OpenedFolder {
  /** The folder of the databases. */
  databases: string;
  /** The number of shards with which the folder was made. */
  shards: string;
  signingSecret: string;
}

export interface OpenOptions {
  /** The number of shards that a new folder gets. Undefined: one. */
  shards: string | undefined;
  /** The folder may be a copy, because nothing wrote to the original while it was copied. */
  trustCopy?: boolean | undefined;
}

/**
 * Opens a locked folder, or makes it what `npm run standalone` needs, and marks it as used. Throws an `Error`
 * with one line if the folder is of another format, of `npm start`, or a copy of one that was in use.
 */
export async function openFolder(
  folder: string,
  { shards, trustCopy = false }: OpenOptions,
): Promise<OpenedFolder> {
  const databases = join(folder, "databases");
  const opened = await openState(folder, "npm run standalone", shards);
  await makeFolder(databases);
  await markUse(databases, trustCopy).catch((error: unknown) => {
    throw error instanceof UntrustedCopy ? new Error(refusedCopy(folder)) : error;
  });
  return { databases, ...opened };
}

const refusedCopy = (folder: string): string =>
  `${folder} is a copy of the state of a server that was running or was killed, so its files may be of ` +
  "different moments; copy the original again with --backup, or add --trust-copy if nothing wrote to the " +
  "original while it was copied";

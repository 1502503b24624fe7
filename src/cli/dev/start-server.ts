import type { Standalone } from "../../hosts/standalone/server.ts";
import type { TypesDocument } from "../../common/types/document.ts";
import { declareTypes } from "../files/types-file.ts";
import { createClient, type Client } from "../../users/client/index.ts";
import { CommandError, messageOf, usageError, exitCodes } from "../framework/command-error.ts";
import { escapeControls } from "../../common/text/escape.ts";

/** The cells that a coordinator for developers has. */
export const DEV_CELLS: readonly string[] = ["1", "2", "3"];

export interface ServerOptions {
  port: number;
  /** Absolute. */
  stateFolder: string;
  types: TypesDocument | undefined;
  log: (line: string) => void;
}

export interface DevServer {
  url: string;
  keys: Standalone["keys"];
  isFirstStart: boolean;
  /** Calls the coordinator without a connection. Without a cell, as an operator. */
  client: (cell?: string) => Client;
  stop: () => Promise<void>;
}

/** The oldest Node whose SQLite the coordinator can use. */
const NEEDED = [22, 16] as const;

/** @throws an error that says which Node is needed */
export function checkNode(version = process.versions.node): void {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (major > NEEDED[0] || (major === NEEDED[0] && minor >= NEEDED[1])) return;
  throw new CommandError(
    `\`leasehold dev\` needs Node ${NEEDED.join(".")} or newer, because its databases need ` +
      `\`node:sqlite\`; this is Node ${version}. All other commands work with this one`,
    exitCodes.failed,
  );
}

/**
 * Starts the standalone server in this process. It is loaded only now, because all other commands start
 * faster without it, and with an older Node too.
 *
 * @throws an error that says what to do next
 */
export async function startServer({ port, stateFolder, types, log }: ServerOptions): Promise<DevServer> {
  checkNode();
  const { startStandalone } = await import("../../hosts/standalone/server.ts");
  // SQLite makes its files with the process's mask. Only this user may read them.
  const mask = process.umask(0o077);
  // As in the runtime of Workers, a promise that fails with nobody waiting for it ends nothing.
  const onRejection = (error: unknown): void =>
    log(JSON.stringify({ event: "unhandled_rejection", error: messageOf(error) }));
  const restore = (): void => {
    process.umask(mask);
    process.off("unhandledRejection", onRejection);
  };
  process.on("unhandledRejection", onRejection);
  let server: Standalone;
  try {
    server = await startStandalone({
      host: "127.0.0.1",
      port,
      stateFolder,
      cells: DEV_CELLS,
      variables: {},
      log,
      onStorageFailure: endAtOnce,
    });
  } catch (error) {
    restore();
    throw startError(messageOf(error), port);
  }
  const client = (cell?: string): Client =>
    createClient({
      url: server.url,
      key: cell === undefined ? server.keys.operator : (server.keys.cells[cell] ?? ""),
      cell,
      fetch: (url, init) => server.dispatch(new Request(url, init)),
    });
  const stop = async (): Promise<void> => {
    await server.stop();
    restore();
  };
  try {
    if (types !== undefined) await declare(client(), types);
  } catch (error) {
    await stop();
    throw error;
  }
  return { url: server.url, keys: server.keys, isFirstStart: server.isFirstStart, client, stop };
}

function startError(message: string, port: number): CommandError {
  if (message.startsWith(`port ${port} `))
    return new CommandError(message.replace(/; set PORT.*/, ""), exitCodes.failed, [
      `leasehold dev --port ${port < 65_535 ? port + 1 : 8_788}`,
    ]);
  // The messages of the server name its variable, which is the default of `--state`.
  return new CommandError(message.replace("set LEASEHOLD_STATE to", "give --state"), exitCodes.failed, [
    "leasehold dev --state FOLDER",
    "leasehold dev --temporary",
  ]);
}

async function declare(client: Client, types: TypesDocument): Promise<void> {
  const { lines, isRefused } = await declareTypes(client, types, false);
  if (isRefused) throw usageError(`--types is refused: ${lines.join(" ")}`);
}

/** From now on, nobody knows what is on the disk, so nothing may leave the process. */
function endAtOnce({ message }: Error): never {
  process.stderr.write(`leasehold: the storage failed: ${escapeControls(message)}\n`);
  process.exit(exitCodes.failed);
}

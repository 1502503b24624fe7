/** `npm run standalone`: runs one coordinator in this process until a signal stops it. */
import { writeSync } from "node:fs";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { devKeys } from "../workerd/dev-keys.ts";
import { onStopSignal } from "../workerd/on-stop-signal.ts";
import { log, runServer } from "../workerd/server-process.ts";
import { endWithNpm, portOf, variablesOf } from "../workerd/settings.ts";
import { readAuthorities, readTls } from "../workerd/tls-files.ts";
import { declareTypes, readTypesFile } from "../../cli/files/types-file.ts";
import { createClient } from "../../users/client/index.ts";
import type { TypesDocument } from "../../common/types/document.ts";
import { withoutQuotes } from "../../coordinator/d1/database.ts";
import { escapeControls } from "../../common/text/escape.ts";
import { MAX_CONNECTIONS } from "./connections.ts";
import { restorePart, salvageParts } from "./recover.ts";
import { backUpState, startStandalone, type Standalone, type StandaloneOptions } from "./server.ts";
import type { StorageFailure } from "./disk.ts";

const HELP = `Usage: npm run standalone -- [options]

Runs one coordinator in one process until a signal stops it. docs/operating/standalone.md has more.

  --host <address>  the address to listen on (127.0.0.1)
  --cert <path>     a certificate in PEM, for TLS; needs --key
  --key <path>      the certificate's private key in PEM
  --grpc-port <port>  also serves native gRPC there; with --cert over TLS
  --client-ca <path>  certificates of authorities in PEM: clients may have a certificate that one of them
                    has signed, and clients of gRPC must have one; needs --cert
  --types <path>    a file with the types of names that the coordinator has from now on;
                    docs/guides/declare-types.md describes it
  --backup <folder> copies the state to a new folder, also while a server uses it, and ends
  --restore-part <name>  replaces one part (shard-0, cell-7, directory or projection) by that of the
                    backup in --from, and ends; only while no server uses the state
  --from <folder>   the backup
  --salvage <folder>  copies every part that can be read to a new folder, names the others, and ends; only
                    while no server uses the state
  --trust-copy      accepts a folder that is a copy of one in use; only for a copy during which nothing
                    wrote to the original
  --help            show this text

Variables: PORT (8787), LEASEHOLD_STATE (.leasehold-standalone), and those of
docs/reference/configuration.md.
`;

const STDERR = 2;

const stateFolder = resolve(process.env["LEASEHOLD_STATE"] || ".leasehold-standalone");

interface Options extends Pick<StandaloneOptions, "host" | "tls" | "trustCopy" | "grpc"> {
  types?: string;
  backup?: string;
  restore?: { part: string; from: string };
  salvage?: string;
}

/** Returns undefined if only the help was asked for. */
async function optionsOf(args: string[]): Promise<Options | undefined> {
  const text = { type: "string" } as const;
  const { values } = parseArgs({
    args,
    options: {
      host: text,
      cert: text,
      key: text,
      "grpc-port": text,
      "client-ca": text,
      types: text,
      backup: text,
      "restore-part": text,
      from: text,
      salvage: text,
      "trust-copy": { type: "boolean" },
      help: { type: "boolean" },
    },
  });
  if (values.help === true) return undefined;
  // An empty value is that of a variable that is not set. An empty host would mean all addresses.
  for (const [option, value] of Object.entries(values))
    if (value === "") throw new Error(`--${option} needs a value`);
  const { host = "127.0.0.1", cert, key, types, backup, from, salvage } = values;
  const part = values["restore-part"];
  if (part !== undefined && from === undefined) throw new Error("--restore-part needs --from");
  if (part === undefined && from !== undefined) throw new Error("--from needs --restore-part");
  if (cert !== undefined && key === undefined) throw new Error("--cert needs --key");
  if (key !== undefined && cert === undefined) throw new Error("--key needs --cert");
  const grpcPort = values["grpc-port"];
  const clientCa = values["client-ca"];
  if (clientCa !== undefined && cert === undefined) throw new Error("--client-ca needs --cert and --key");
  return {
    host,
    trustCopy: values["trust-copy"] === true,
    ...(grpcPort === undefined ? {} : { grpc: { port: portOf(grpcPort, "--grpc-port") } }),
    ...(types === undefined ? {} : { types }),
    ...(backup === undefined ? {} : { backup }),
    ...(part === undefined || from === undefined ? {} : { restore: { part, from } }),
    ...(salvage === undefined ? {} : { salvage }),
    ...(cert === undefined || key === undefined ? {} : { tls: await tlsOf(cert, key, clientCa) }),
  };
}

async function tlsOf(
  cert: string,
  key: string,
  clientCa: string | undefined,
): Promise<NonNullable<Options["tls"]>> {
  return {
    ...(await readTls(cert, key)),
    ...(clientCa === undefined ? {} : { clientCa: await readAuthorities("--client-ca", clientCa) }),
  };
}

// SQLite makes its files with the process's mask. Only this user may read them.
process.umask(0o077);

/** Ends the process in this turn, so that nothing leaves it any more. */
function endAtOnce({ message }: StorageFailure): never {
  try {
    writeSync(STDERR, `leasehold: the storage failed: ${escapeControls(message)}\n`);
  } catch {
    // Nobody reads it.
  }
  process.exit(1);
}

async function declare({ url, keys, dispatch }: Standalone, types: TypesDocument): Promise<void> {
  const fetch = (to: string, init: RequestInit): Promise<Response> => dispatch(new Request(to, init));
  const client = createClient({ url, key: keys.operator, fetch });
  const { lines, isRefused } = await declareTypes(client, types, false);
  if (isRefused) throw new Error(`the types are refused: ${lines.join(" ")}`);
}

function banner({ url, grpcAddress, keys, isFirstStart }: Standalone): string {
  const lines = [
    `Leasehold is ready at ${url}`,
    "",
    ...(grpcAddress === undefined ? [] : [`  gRPC       ${grpcAddress}`]),
    `  state      ${stateFolder}`,
    // The keys themselves are not printed, because output is often kept in logs.
    `  keys       ${devKeys.describe(stateFolder, keys)}${isFirstStart ? " (new)" : ""}`,
    "",
    `  API reference  ${url}/docs`,
    "",
    "Ctrl-C stops it. The state is kept.",
  ];
  return `${lines.join("\n")}\n`;
}

async function main(): Promise<void> {
  const options = await optionsOf(process.argv.slice(2));
  if (options === undefined) return void process.stdout.write(HELP);
  const { host, tls, grpc, trustCopy, backup, restore, salvage } = options;
  if (backup !== undefined) {
    const { files, bytes } = await backUpState(stateFolder, backup, { trustCopy });
    process.stdout.write(`Copied ${stateFolder} to ${resolve(backup)}: ${files} files, ${bytes} bytes.\n`);
    return;
  }
  if (restore !== undefined) {
    const rows = await restorePart(stateFolder, restore, { trustCopy });
    process.stdout.write(`Restored ${restore.part} from ${resolve(restore.from)}: ${rows} rows.\n`);
    return;
  }
  if (salvage !== undefined) {
    const { copied, damaged } = await salvageParts(stateFolder, salvage, { trustCopy });
    process.stdout.write(
      `Copied ${copied.length} parts to ${resolve(salvage)}.\n` +
        damaged.map(({ part, error }) => `  ${part} is damaged: ${error}\n`).join(""),
    );
    process.exitCode = damaged.length === 0 ? 0 : 1;
    return;
  }
  // A wrong file is refused before anything is started.
  const types = options.types === undefined ? undefined : await readTypesFile(options.types);
  const ended = new Promise<void>((end) => {
    onStopSignal(end);
    endWithNpm("standalone", process.cwd(), end);
  });
  const server = await startStandalone({
    host,
    port: portOf(process.env["PORT"]),
    stateFolder,
    trustCopy,
    variables: variablesOf(process.env),
    ...(tls === undefined ? {} : { tls }),
    grpc,
    log,
    onStorageFailure: endAtOnce,
  });
  const { maxConnections } = server;
  if (maxConnections < MAX_CONNECTIONS)
    log(`leasehold: only ${maxConnections} connections are accepted; for more, raise \`ulimit -Hn\``);
  try {
    if (types !== undefined) await declare(server, types);
  } catch (error) {
    await server.stop();
    throw error;
  }
  process.stdout.write(banner(server));
  await ended;
  await server.stop();
}

// As in the runtime of Workers, a promise that fails with nobody waiting for it ends nothing.
process.on("unhandledRejection", (error) => {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  log(JSON.stringify({ event: "unhandled_rejection", error: withoutQuotes(text) }));
});

runServer(main);

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { readTypesFile } from "../files/types-file.ts";
import { CommandError, messageOf, usageError, exitCodes } from "../framework/command-error.ts";
import { untilAborted } from "../framework/io.ts";
import type { Context } from "../framework/context.ts";
import { printResult } from "../output/print.ts";
import type { Result } from "../output/result.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import { fields } from "../output/table.ts";
import { findContext, forgetContext, saveContext } from "./dev-context.ts";
import { readSeeds, seedNames, type Seeded } from "./seed-names.ts";
import { checkNode, DEV_CELLS, startServer, type DevServer } from "./start-server.ts";

interface DevOptions {
  port?: number;
  state?: string;
  temporary?: boolean;
  seed?: string;
  types?: string;
  save: boolean;
  saveAs: string;
  log?: boolean;
}

const PORT = 8_787;
const STATE = ".leasehold";

/** Lines of the log that come all the time. */
const ROUTINE: ReadonlySet<string> = new Set(["request", "cron_run"]);

/** Runs a coordinator in this process until Ctrl-C, which is not a failure. */
export async function dev(context: Context, options: DevOptions): Promise<undefined> {
  const { io } = context;
  checkNode();
  if (context.options.url !== undefined || context.options.context !== undefined)
    throw usageError("dev starts a deployment of its own: leave out --url and --context");
  const before = options.save ? await findContext(io, options.saveAs) : undefined;
  const types = options.types === undefined ? undefined : await readTypes(options.types);
  const isTemporary = options.temporary === true;
  const folder = isTemporary ? await mkdtemp(join(tmpdir(), "leasehold-dev-")) : stateOf(context, options);
  try {
    const server = await startServer({
      port: options.port ?? portOf(io.env["PORT"]),
      stateFolder: folder,
      types,
      log: (line) => {
        if (options.log === true || !ROUTINE.has(eventOf(line)))
          void io.err.write(`${line}\n`).catch(() => undefined);
      },
    });
    try {
      await serve(context, options, server, folder);
    } finally {
      await server.stop();
      if (isTemporary && options.save) await forgetContext(io, options.saveAs, server.keys.operator, before);
    }
  } finally {
    if (isTemporary) await rm(folder, { recursive: true, force: true });
  }
  await io.err.write(`Stopped. ${isTemporary ? "The state is gone." : `The state is in ${folder}.`}\n`);
  return undefined;
}

const stateOf = ({ io }: Context, { state }: DevOptions): string =>
  resolve(state ?? (io.env["LEASEHOLD_STATE"] || STATE));

function portOf(given: string | undefined): number {
  const port = Number(given || PORT);
  if (Number.isSafeInteger(port) && port >= 1 && port <= 65_535) return port;
  throw usageError("PORT must be a whole number from 1 to 65535");
}

const readTypes = (file: string) =>
  readTypesFile(file).catch((error: unknown) => {
    throw usageError(`--types: ${messageOf(error)}`);
  });

function eventOf(line: string): string {
  try {
    return String((JSON.parse(line) as { event?: unknown }).event);
  } catch {
    return "";
  }
}

async function serve(
  context: Context,
  options: DevOptions,
  server: DevServer,
  folder: string,
): Promise<void> {
  const { io } = context;
  const seeded = options.seed === undefined ? undefined : await seed(context, options.seed, server);
  const { url, keys } = server;
  const saved = options.save
    ? await saveContext(io, options.saveAs, { url, key: keys.operator })
    : { name: undefined, isCurrent: false, note: undefined };
  const flags = saved.name === undefined || saved.isCurrent ? [] : ["--context", saved.name];
  const first = seeded?.first;
  const result: Result = {
    document: {
      url,
      docs_url: `${url}/docs`,
      state: folder,
      keys_file: keysFileOf(folder),
      cells: DEV_CELLS,
      first_start: server.isFirstStart,
      context: saved.name ?? null,
      seeded: seeded?.claimed ?? 0,
    },
    text: (style) =>
      [
        style.bold(`Leasehold is ready at ${url}`),
        fields([
          ["API reference", `${url}/docs`],
          ["state", `${folder}${options.temporary === true ? ", until it stops" : ""}`],
          ["keys", `${keysFileOf(folder)}: operator, router, cells ${DEV_CELLS.join(", ")}`],
          ["context", saved.name && `${saved.name}${saved.isCurrent ? ", the current one" : ""}`],
          ["names", seeded && `${seeded.claimed} claimed, ${seeded.kept} were there`],
        ]),
        "Ctrl-C stops it.",
      ].join("\n\n"),
    notes: saved.note === undefined ? [] : [saved.note],
    nextSteps:
      saved.name === undefined
        ? []
        : [
            commandLine("status", ...flags),
            ...(first === undefined
              ? []
              : [commandLine("lookup", first.value, "--type", first.type, ...flags)]),
          ],
  };
  await printResult(io, result, context.format);
  await untilAborted(io.signal);
}

/** The file has mode 600. */
const keysFileOf = (folder: string): string => join(folder, "dev-keys.json");

async function seed({ io }: Context, given: string, server: DevServer): Promise<Seeded> {
  const seeds = await readSeeds(given, server.client());
  try {
    return await seedNames(seeds, server.client, io.signal);
  } catch (error) {
    if (io.signal.aborted) throw error;
    throw new CommandError(`the names of --seed can't be claimed: ${messageOf(error)}`, exitCodes.conflict);
  }
}

import { randomBytes } from "node:crypto";
import { Api, Slots, type CellName, type WebFetch } from "../../users/conformance/api.ts";
import { typesOf, type Check, type NameTypes } from "../../users/conformance/check-context.ts";
import { checks } from "../../users/conformance/checks/checks.ts";
import { cleanUp, type CleanedUp } from "../../users/conformance/clean-up.ts";
import { runChecks } from "../../users/conformance/run-checks.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import { CommandError, messageOf, usageError, exitCodes } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import type { Result } from "../output/result.ts";
import { checkBegins, checkKeys } from "./check-connection.ts";
import { readTested, type KeyOptions, type Tested } from "./read-keys.ts";
import { listOfChecks, reportOf } from "./report.ts";

export interface ConformanceOptions extends KeyOptions {
  only?: string[];
  list?: boolean;
  seed?: number;
  histories: number;
  concurrency: number;
  prefix?: string;
  wire: boolean;
  type?: string;
  subject?: string;
  source?: string;
  cleanUp?: string;
}

/**
 * Names of others can't begin like this by accident, and no prefix begins another one, so nothing else is
 * given up.
 */
const PREFIX = /^conformance-[a-z\d]{3,27}-$/;

/** Runs the checks, and gives up all names in the end, after Ctrl-C too. */
export async function conformance(context: Context, options: ConformanceOptions): Promise<Result> {
  const chosen = chosenChecks(options.only);
  if (options.list === true) return listOfChecks(chosen);
  const prefix = options.cleanUp ?? options.prefix ?? `conformance-${randomBytes(4).toString("hex")}-`;
  if (!PREFIX.test(prefix))
    throw usageError(
      "the prefix must be `conformance-`, then 3 to 27 of a-z and 0-9, then -, " +
        "such as conformance-1f3b5c7d-",
    );
  const tested = await readTested(context, options);
  const { io } = context;
  // Both are the platform's `fetch`.
  const fetch = io.fetch as unknown as WebFetch;
  const api = new Api({ ...tested, fetch, signal: io.signal, calls: new Slots(1) });
  await checkKeys(api, tested);
  const types = await typesOf(api, {
    ...(options.type === undefined ? {} : { bucket: options.type }),
    ...(options.subject === undefined ? {} : { subject: options.subject }),
    ...(options.source === undefined ? {} : { source: options.source }),
  });
  if (options.cleanUp !== undefined)
    return cleanUpResult(prefix, await cleanUpAll(api, tested, types, prefix));
  const unending = new Api({ ...tested, fetch, signal: new AbortController().signal, calls: new Slots(1) });
  await checkBegins(api, unending, tested, types, prefix);
  const seed = options.seed ?? randomBytes(4).readUInt32LE();
  const { cell, otherCell } = tested;
  const cells = otherCell === undefined ? `cell ${cell}` : `cells ${cell} and ${otherCell}`;
  await io.err.write(`Names begin with ${prefix}, in ${cells}. The seed is ${seed}.\n`);
  const report = await runChecks({
    ...tested,
    fetch,
    deployment: { cell, otherCell, types },
    checks: chosen,
    prefix,
    seed,
    concurrency: options.concurrency,
    histories: options.histories,
    withWire: options.wire,
    signal: io.signal,
  });
  const { url } = tested;
  return reportOf({ ...report, url, cell, otherCell, types, prefix, seed, isInterrupted: io.signal.aborted });
}

const matches = (wanted: string, { id, rules }: Check): boolean =>
  id === wanted || rules.includes(wanted.toUpperCase());

/** @throws a usage error that names what is neither a rule nor a check */
function chosenChecks(only: readonly string[] | undefined): readonly Check[] {
  if (only === undefined) return checks;
  const unknown = only.find((wanted) => !checks.some((check) => matches(wanted, check)));
  if (unknown !== undefined)
    throw usageError(`--only ${unknown}: there is no check of this rule, and none with this id`, [
      "leasehold conformance --list",
    ]);
  return checks.filter((check) => only.some((wanted) => matches(wanted, check)));
}

async function cleanUpAll(
  api: Api,
  { cell, otherCell }: Tested,
  types: NameTypes,
  prefix: string,
): Promise<CleanedUp> {
  const done: CleanedUp = { rolled_back: 0, released: 0 };
  const { signal } = new AbortController();
  const cells: [CellName, string][] = [["cell", cell]];
  if (otherCell !== undefined) cells.push(["other", otherCell]);
  for (const [who, id] of cells) {
    const cleaned = await cleanUp({ api, who, cell: id, types, prefix, signal }).catch((error: unknown) => {
      throw new CommandError(`cell ${id} can't be cleaned up: ${messageOf(error)}`, exitCodes.failed, [
        commandLine("conformance", "--clean-up", prefix),
      ]);
    });
    done.rolled_back += cleaned.rolled_back;
    done.released += cleaned.released;
  }
  return done;
}

const cleanUpResult = (prefix: string, done: CleanedUp): Result => ({
  document: { prefix, clean_up: done },
  text: () => `Gave up ${done.released} names, and rolled back ${done.rolled_back} leases.`,
});

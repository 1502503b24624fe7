import { isCellId } from "../auth/principal.ts";
import { readConfig } from "../config.ts";
import { limitNames, limitVariable } from "../core/limits.ts";
import { MAX_SHARDS } from "../core/placement.ts";
import { logEvent } from "../log.ts";
import type { TestCoordinatorOptions } from "./types.ts";

export interface Options {
  cells: readonly string[];
  /** All of them, as the Worker gets them. */
  variables: Readonly<Record<string, string>>;
  log: typeof logEvent;
}

const OPTIONS: ReadonlySet<string> = new Set(["cells", "shards", "variables"]);

/** What may be given as a variable. The number of shards is an option, and the secret is made up. */
const VARIABLES: ReadonlySet<string> = new Set([
  ...limitNames.map(limitVariable),
  "LEASEHOLD_REQUEST_LOG",
  "LEASEHOLD_SHARD_LOCATION_HINT",
]);

/** Throws a sentence that says which option is wrong. */
export function optionsOf(given: TestCoordinatorOptions): Options {
  for (const name of Object.keys(given))
    if (!OPTIONS.has(name)) throw new TypeError(`startTestCoordinator knows no option \`${name}\``);
  const { cells = ["1", "2"], shards = 4, variables = {} } = given;
  checkCells(cells);
  if (!Number.isSafeInteger(shards) || shards < 1 || shards > MAX_SHARDS)
    throw new TypeError(`\`shards\` must be a whole number from 1 to ${MAX_SHARDS}`);
  for (const [name, value] of Object.entries(variables)) checkVariable(name, value);
  const all = { ...variables, LEASEHOLD_SHARDS: String(shards) };
  readConfig(all);
  // What it has to say would drown what the test has to say, unless somebody asks for it.
  const log = "LEASEHOLD_REQUEST_LOG" in variables ? logEvent : () => {};
  return { cells, variables: all, log };
}

function checkCells(cells: readonly string[]): void {
  if (!Array.isArray(cells)) throw new TypeError("`cells` must be a list of ids");
  const wrong = cells.find((id) => typeof id !== "string" || !isCellId(id));
  if (wrong !== undefined)
    throw new TypeError(
      `\`cells\` must be ids, as decimal strings above 0: ${JSON.stringify(wrong)} is none`,
    );
  if (new Set(cells).size < cells.length) throw new TypeError("`cells` must not have the same id twice");
}

function checkVariable(name: string, value: unknown): void {
  if (name === "LEASEHOLD_SHARDS")
    throw new TypeError("the number of shards is given as `shards`, not as a variable");
  if (!VARIABLES.has(name))
    throw new TypeError(`there is no variable ${name}, or it means nothing in a test`);
  if (typeof value !== "string")
    throw new TypeError(`the variable ${name} must be a string, as in wrangler.toml`);
}

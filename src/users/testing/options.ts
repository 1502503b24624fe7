import { isCellId } from "../../coordinator/auth/principal.ts";
import { readConfig } from "../../coordinator/config.ts";
import { limitNames, limitVariable } from "../../common/limits.ts";
import { MAX_SHARDS } from "../../coordinator/kernel/placement.ts";
import { ok } from "../../coordinator/kernel/refusal.ts";
import { typesOf, type TypesDocument } from "../../common/types/document.ts";
import { logEvent } from "../../coordinator/log.ts";
import type { TestCoordinatorOptions } from "./types.ts";

export interface Options {
  cells: readonly string[];
  types: TypesDocument | undefined;
  /** All variables, in the form in which the Worker gets them. */
  variables: Readonly<Record<string, string>>;
  log: typeof logEvent;
}

const OPTIONS: ReadonlySet<string> = new Set(["cells", "shards", "types", "variables"]);

/** The variables that may be given. The number of shards is an option, and the secret is generated. */
const VARIABLES: ReadonlySet<string> = new Set([
  ...limitNames.map(limitVariable),
  "LEASEHOLD_REQUEST_LOG",
  "LEASEHOLD_WEBHOOK_HOSTS",
  "LEASEHOLD_SHARD_LOCATION_HINT",
]);

/** Throws a TypeError that names the wrong option. */
export function optionsOf(given: TestCoordinatorOptions): Options {
  for (const name of Object.keys(given))
    if (!OPTIONS.has(name))
      throw new TypeError(
        `startTestCoordinator has no option \`${name}\`; it has cells, shards, types and variables`,
      );
  const { cells = ["1", "2"], shards = 4, types, variables = {} } = given;
  checkCells(cells);
  const read = types === undefined ? ok([]) : typesOf(types);
  if (!read.ok) throw new TypeError(`\`types\` cannot be used: ${read.refusal.detail}`);
  if (!Number.isSafeInteger(shards) || shards < 1 || shards > MAX_SHARDS)
    throw new TypeError(`\`shards\` must be a whole number from 1 to ${MAX_SHARDS}`);
  for (const [name, value] of Object.entries(variables)) checkVariable(name, value);
  // A decision that waits would make the kinds of later conflicts depend on time.
  const all = { LEASEHOLD_DECISION_WAIT_MS: "0", ...variables, LEASEHOLD_SHARDS: String(shards) };
  readConfig(all);
  // The coordinator is silent by default, because its log would hide the output of the test.
  const log = "LEASEHOLD_REQUEST_LOG" in variables ? logEvent : () => {};
  return { cells, types, variables: all, log };
}

function checkCells(cells: readonly string[]): void {
  if (!Array.isArray(cells)) throw new TypeError("`cells` must be a list of ids");
  const wrong = cells.find((id) => typeof id !== "string" || !isCellId(id));
  if (wrong !== undefined)
    throw new TypeError(
      `\`cells\` must be ids, which are decimal strings above 0; ${JSON.stringify(wrong)} is not`,
    );
  if (new Set(cells).size < cells.length) throw new TypeError("`cells` must not have the same id twice");
}

function checkVariable(name: string, value: unknown): void {
  if (name === "LEASEHOLD_SHARDS")
    throw new TypeError("give the number of shards as `shards`, not as the variable LEASEHOLD_SHARDS");
  if (!VARIABLES.has(name))
    throw new TypeError(`\`variables\` must not have ${name}: it does not exist, or has no effect in tests`);
  if (typeof value !== "string")
    throw new TypeError(`\`variables.${name}\` must be a string, as in wrangler.toml`);
}

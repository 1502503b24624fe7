import { Option, type Command } from "commander";
import type { Context } from "../framework/context.ts";
import { usageError } from "../framework/command-error.ts";
import { escapeLines } from "../../common/text/escape.ts";

/** The options of every command that changes a deployment. */
export interface ChangeOptions {
  reason?: string;
  yes?: boolean;
  dryRun?: boolean;
}

/** The coordinator takes 500 bytes, unless its limits say otherwise. It checks its own limit as well. */
const MAX_REASON_BYTES = 4_096;

/** @param isAlways - false for a command that also has uses which change nothing */
export const withChangeOptions = (command: Command, isAlways = true): Command =>
  command
    .addOption(new Option("--reason <text>", "why you do this").makeOptionMandatory(isAlways))
    .option("--yes", "don't ask; required where nobody can be asked")
    .addOption(
      new Option("--dry-run", "show what would change, and send nothing that changes it").implies({
        reason: "",
      }),
    );

/**
 * Reads the reason before anything is sent. A dry run needs none.
 *
 * @throws a usage error if it is missing or unusable
 */
export function reasonOf({ reason = "", dryRun }: ChangeOptions): string {
  const trimmed = reason.trim();
  if (trimmed === "" && dryRun === true) return "";
  if (trimmed === "") throw usageError("--reason is required: say why you do this");
  if (/\p{Cc}/u.test(trimmed)) throw usageError("--reason must be one line without control characters");
  if (Buffer.byteLength(trimmed) > MAX_REASON_BYTES)
    throw usageError(`--reason must have at most ${MAX_REASON_BYTES} bytes`);
  return trimmed;
}

/**
 * Makes sure that a person, or a script with `--yes`, wants the change.
 *
 * @param name - what a person has to type, such as the id of the cell
 * @param effect - a sentence about what will happen
 * @throws a usage error if not
 */
export async function confirm(
  { io }: Pick<Context, "io">,
  { yes }: ChangeOptions,
  { name, effect }: { name: string; effect: string },
): Promise<void> {
  if (yes === true) return;
  if (io.prompt === undefined)
    throw usageError("give --yes, because there is no terminal to confirm the change at");
  const typed = await io.prompt.ask(escapeLines(`${effect}\nType ${name} to go on: `));
  if (typed.trim() !== name)
    throw usageError(`${JSON.stringify(typed.trim())} is not ${name}: nothing was changed`);
}

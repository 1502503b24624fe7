import { Command } from "commander";
import { usageError } from "./command-error.ts";

/**
 * A command that leaves missing arguments and flags to `refuseMissing`. Commander itself ends at the first of
 * them, so that a person learns of each one in another try.
 */
export class LenientCommand extends Command {
  override createCommand(name?: string): Command {
    return new LenientCommand(name);
  }

  missingArgument(): void {}

  missingMandatoryOptionValue(): void {}
}

/** @throws a usage error that names all arguments and flags that are missing */
export function refuseMissing(command: Command, canAsk: boolean): void {
  const given = command.opts<Record<string, unknown>>();
  const mandatory = command.options.filter((option) => option.mandatory);
  const missing = [
    ...command.registeredArguments
      .filter(({ required }, at) => required && command.args[at] === undefined)
      .map((argument) => argument.name().toUpperCase()),
    ...mandatory
      .filter((option) => given[option.attributeName()] === undefined)
      .map(({ long, flags }) => long ?? flags),
  ];
  if (missing.length === 0) return;
  // Without anything else missing, `confirm` says it, because some changes turn out to be none.
  const needsYes = mandatory.some(({ long }) => long === "--reason") && given["dryRun"] !== true;
  if (needsYes && !canAsk && given["yes"] !== true) missing.push("--yes");
  const names =
    missing.length === 1 ? missing[0] : `${missing.slice(0, -1).join(", ")} and ${missing.at(-1)}`;
  throw usageError(`${names} ${missing.length === 1 ? "is" : "are"} required`, [`${lineOf(command)} --help`]);
}

/** The words that call a command. */
const lineOf = (command: Command): string =>
  command.parent === null ? command.name() : `${lineOf(command.parent)} ${command.name()}`;

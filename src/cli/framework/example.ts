import type { Command } from "commander";

/** Adds examples to the help of a command, each with the sentence that says what it does. */
export const withExamples = (
  command: Command,
  ...examples: readonly (readonly [string, string])[]
): Command =>
  command.addHelpText(
    "after",
    `\nExamples:\n${examples.map(([line, about]) => `  ${about}:\n    leasehold ${line}`).join("\n")}`,
  );

import type { Command } from "commander";

/** A command as the completion scripts need it. */
export interface CommandNode {
  /** The words after `leasehold`, such as `leases show`. */
  path: string;
  about: string;
  subcommands: readonly { name: string; about: string }[];
  flags: readonly Flag[];
}

export interface Flag {
  name: string;
  about: string;
  takesValue: boolean;
  choices: readonly string[];
}

/** Lists all commands of a program, the program itself first. */
export function commandTree(program: Command): CommandNode[] {
  const globals = flagsOf(program);
  const walk = (command: Command, path: string): CommandNode[] => [
    {
      path,
      about: command.description(),
      subcommands: command.commands.map((each) => ({ name: each.name(), about: each.description() })),
      flags: command === program ? globals : [...flagsOf(command), ...globals],
    },
    ...command.commands.flatMap((each) => walk(each, path === "" ? each.name() : `${path} ${each.name()}`)),
  ];
  return walk(program, "");
}

const flagsOf = (command: Command): Flag[] => [
  ...command.options.map(({ long, flags, description, required, optional, argChoices }) => ({
    name: long ?? flags,
    about: description,
    takesValue: required || optional,
    choices: argChoices ?? [],
  })),
  ...(command.parent === null
    ? [{ name: "--help", about: "show the help of a command", takesValue: false, choices: [] }]
    : []),
];

import { Argument, type Command } from "commander";
import { withExamples } from "../framework/arguments.ts";
import type { Run } from "../framework/run.ts";
import { commandTree } from "./command-tree.ts";
import { scripts, shells, type Shell } from "./scripts.ts";

export function addCompletion(program: Command, run: Run): void {
  const command = program
    .command("completion")
    .description("Print the completion script of a shell.")
    .addArgument(new Argument("<shell>", "the shell").choices(shells))
    .action(
      run(async (_context, shell: Shell) => {
        const script = scripts[shell](commandTree(program));
        return { document: { shell, script }, text: () => script };
      }),
    );
  withExamples(
    command,
    ["completion bash > ~/.local/share/bash-completion/completions/leasehold", "Install it for bash"],
    ["completion fish > ~/.config/fish/completions/leasehold.fish", "Install it for fish"],
  );
}

import type { Command } from "commander";
import { withExamples } from "../framework/arguments.ts";
import type { Run } from "../framework/run.ts";
import { listContexts, removeContext, useContext } from "./contexts.ts";

export function addContexts(program: Command, run: Run): void {
  const group = program.command("context").description("Deployments that were saved with `leasehold login`.");
  withExamples(group.command("ls").description("List the contexts.").action(run(listContexts)), [
    "context ls",
    "Show all contexts, without their keys",
  ]);
  withExamples(
    group
      .command("use")
      .description("Choose the context that commands use by default.")
      .argument("<name>", "the name of the context")
      .action(run(useContext)),
    ["context use production", "Switch to the context production"],
  );
  withExamples(
    group
      .command("rm")
      .description("Forget a context and its key. The key itself stays valid.")
      .argument("<name>", "the name of the context")
      .option("--yes", "don't ask; required where nobody can be asked")
      .action(run(removeContext)),
    ["context rm production", "Forget the context production"],
  );
}

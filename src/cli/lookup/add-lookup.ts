import type { Command } from "commander";
import { withExamples } from "../framework/arguments.ts";
import type { Run } from "../framework/run.ts";
import { lookup } from "./lookup.ts";

export function addLookup(program: Command, run: Run): void {
  const command = program
    .command("lookup")
    .description("Show which cell owns a name. Exit code 4: a name has no owner.")
    .argument("<names...>", "one or more names, in any spelling")
    .option("--type <type>", "the bucket type; all declared types by default, for operators")
    .option("--trace", "ask the records and the route, compare them, and show where the name is stored")
    .action(run(lookup));
  withExamples(
    command,
    ["lookup ada", "Look for ada in all types"],
    ["lookup ada grace --type USERNAMES --json", "Look up two usernames"],
    ["lookup ada --type USERNAMES --trace", "Compare what lookups and routers are told"],
  );
}

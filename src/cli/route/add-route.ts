import { Option, type Command } from "commander";
import { withExamples } from "../framework/arguments.ts";
import type { Run } from "../framework/run.ts";
import { checkRoutes } from "./check-routes.ts";
import { testRoutes } from "./test-routes.ts";

const collect = (value: string, before: readonly string[] = []): readonly string[] => [...before, value];

export function addRoute(program: Command, run: Run): void {
  const group = program.command("route").description("Routing rules: try them, and find mistakes in them.");
  withExamples(
    group
      .command("test")
      .description("Show which rule and which cell a router chooses for URLs. Exit code 4: none.")
      .argument("<urls...>", "absolute URLs")
      .addOption(new Option("--rules <file>", "the file of rules").default("router/rules.json"))
      .addOption(
        new Option("--header <line>", "a header, as in `Cookie: a=b`; may be repeated").argParser(collect),
      )
      .addOption(new Option("--method <method>", "the method of the requests").default("GET"))
      .option("--offline", "only show what the rules say, without asking the deployment")
      .action(run(testRoutes)),
    ["route test https://app.example.com/acme --rules rules.json", "Which cell serves this page"],
    ["route test https://app.example.com/acme --offline", "Which names would be looked up"],
  );
  withExamples(
    group
      .command("check")
      .description("Find mistakes in files of rules. Exit code 1: there are some.")
      .argument("<files...>", "files of rules")
      .addOption(new Option("--types <file>", "the declared types; those of GitLab by default"))
      .action(run(checkRoutes)),
    ["route check rules.json --types leasehold.types.json", "Check a file before you deploy it"],
  );
}

import { Option, type Command } from "commander";
import { cellId, limitOption, withExamples } from "../framework/arguments.ts";
import type { Run } from "../framework/run.ts";
import { withChangeOptions } from "../safety/confirm.ts";
import { eraseHistory, listHistory } from "./history.ts";
import { exportClaims } from "./export-claims.ts";
import { findClaims, listClaims, showClaim } from "./claims.ts";

const collect = (value: string, before: readonly string[] = []): readonly string[] => [...before, value];

export function addClaims(program: Command, run: Run): void {
  const group = program.command("claims").description("Claims: the names that cells own.");
  withExamples(
    withRange(group.command("ls").description("List claims of a cell, in the order of their source ids."))
      .addOption(new Option("--source <type>", "only of this source type; all types by default"))
      .addOption(limitOption())
      .action(run(listClaims)),
    ["claims ls --cell 7 --source RAILS_TABLE_USERS --limit 10", "The first claims of a table"],
  );
  withExamples(
    group
      .command("show")
      .description("Show the claim on a name: its cell, subject, source and epoch.")
      .argument("<name>", "the name, in any spelling")
      .requiredOption("--type <type>", "the bucket type")
      .action(run(showClaim)),
    ["claims show ada --type USERNAMES", "Show who has the username ada, and for which row"],
  );
  withExamples(
    group
      .command("find")
      .description("List the claims of all cells for a subject. This reads every claim of the coordinator.")
      .argument("<subject-type>", "the type of the subject")
      .argument("<subject-id>", "the id of the subject")
      .addOption(limitOption())
      .action(run(findClaims)),
    ["claims find USER 42", "The names of a user, in all cells"],
  );
  withExamples(
    withRange(
      group
        .command("export")
        .description("Print all claims of a cell for a source type, one JSON document per line."),
    )
      .requiredOption("--source <type>", "the source type")
      .option("--after <id>", "continue behind this source id, as an interrupted export says")
      .action(run(exportClaims)),
    ["claims export --cell 7 --source RAILS_TABLE_USERS > users.ndjson", "Export the claims of a table"],
  );
  withExamples(
    group
      .command("history")
      .description("List the owners of a name, now and before, the latest first.")
      .argument("<name>", "the name, in any spelling")
      .requiredOption("--type <type>", "the bucket type")
      .addOption(new Option("--at <time>", "only the owner at this time, such as 2026-11-18T09:00:00Z"))
      .addOption(limitOption())
      .action(run(listHistory)),
    ["claims history ada --type USERNAMES", "The owners of the username ada, now and before"],
    ["claims history ada --type USERNAMES --at 2026-11-18T09:00:00Z", "Its owner on that morning"],
  );
  withExamples(
    withChangeOptions(
      group
        .command("erase-history")
        .description("Erase the past periods of a name. This is final. Its current claim stays.")
        .argument("<name>", "the name, in any spelling")
        .requiredOption("--type <type>", "the bucket type")
        .action(run(eraseHistory)),
    ),
    [
      'claims erase-history ada --type USERNAMES --reason "request 4711 of a former user"',
      "Erase the past owners of the username ada",
    ],
  );
}

const withRange = (command: Command): Command =>
  command
    .addOption(new Option("--cell <id>", "the cell").argParser(cellId).makeOptionMandatory())
    .addOption(new Option("--type <type>", "only of this bucket type; may be repeated").argParser(collect));

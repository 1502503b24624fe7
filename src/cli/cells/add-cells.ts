import { Option, type Command } from "commander";
import { cellId, limitOption, withExamples } from "../framework/arguments.ts";
import type { Run } from "../framework/run.ts";
import { withChangeOptions } from "../safety/confirm.ts";
import { addCell } from "./add-cell.ts";
import { drainCell, freezeCell, thawCell, undrainCell } from "./freeze-cell.ts";
import { listCells, setCell, showCell } from "./cells.ts";
import { removeCell } from "./remove-cell.ts";

const HINTS = ["wnam", "enam", "sam", "weur", "eeur", "apac", "apac-ne", "apac-se", "oc", "afr", "me"];

export function addCells(program: Command, run: Run): void {
  const group = program
    .command("cells")
    .description("Cells: list, register, change, freeze, drain and remove them.");
  const one = (name: string, about: string): Command =>
    group.command(name).description(about).argument("<id>", "the id of the cell", cellId);
  withExamples(
    group
      .command("ls")
      .description("List the cells.")
      .option("--removed", "also list cells that were removed")
      .addOption(limitOption())
      .action(run(listCells)),
    ["cells ls", "List the cells with their state and size"],
  );
  withExamples(one("show", "Show a cell.").action(run(showCell)), ["cells show 7", "Show cell 7"]);
  withExamples(
    one("add", "Register a cell.")
      .requiredOption("--name <name>", "a name for people")
      .requiredOption("--address <url>", "the URL to which routers send the cell's requests")
      .addOption(
        new Option("--location-hint <region>", "where its ledger is created, for good").choices(HINTS),
      )
      .option("--reason <text>", "why you do this; the audit keeps it")
      .option("--dry-run", "show what would be registered, and send nothing")
      .action(run(addCell)),
    ["cells add 7 --name europe --address https://eu.example.com", "Register cell 7"],
  );
  withExamples(
    withChangeOptions(
      one("set", "Change the name or the address of a cell.")
        .option("--name <name>", "a name for people")
        .option("--address <url>", "the URL to which routers send the cell's requests"),
    ).action(run(setCell)),
    ['cells set 7 --address https://eu2.example.com --reason "new load balancer"', "Change an address"],
  );
  withExamples(
    withChangeOptions(one("freeze", "Refuse the cell's begins. Everything else still works.")).action(
      run(freezeCell),
    ),
    ['cells freeze 7 --reason "its database is being restored"', "Freeze cell 7"],
  );
  withExamples(
    withChangeOptions(one("thaw", "Let a frozen cell begin leases again.")).action(run(thawCell)),
    ['cells thaw 7 --reason "its database is restored"', "Thaw cell 7"],
  );
  withExamples(
    withChangeOptions(
      one("drain", "Refuse the cell's begins, except those of a verification. Everything else still works."),
    ).action(run(drainCell)),
    ['cells drain 7 --reason "it will be removed"', "Drain cell 7"],
  );
  withExamples(
    withChangeOptions(one("undrain", "Let a draining cell begin leases again.")).action(run(undrainCell)),
    ['cells undrain 7 --reason "it stays"', "End the draining of cell 7"],
  );
  withExamples(
    withChangeOptions(
      one("remove", "Export the claims of a dead cell, then release them. Repeated, it goes on.").option(
        "--export <file>",
        "the file for the export; it must not exist yet",
      ),
    ).action(run(removeCell)),
    ["cells remove 7 --dry-run", "Show what a removal of cell 7 would release"],
    ['cells remove 7 --export cell-7.jsonl --reason "its hardware is lost"', "Remove cell 7"],
  );
}

import { Option, type Command } from "commander";
import { cellId, duration, limitOption, uuid, withExamples } from "../framework/arguments.ts";
import type { Run } from "../framework/run.ts";
import { withChangeOptions } from "../safety/confirm.ts";
import { decide } from "./decide.ts";
import { listLeases } from "./list-leases.ts";
import { showLease } from "./show-lease.ts";

const EXAMPLE_ID = "0198c5a0-5f6e-7000-8000-000000000001";

export function addLeases(program: Command, run: Run): void {
  const group = program.command("leases").description("Leases: list them, look at one, decide one.");
  withExamples(
    group
      .command("ls")
      .description("List open leases, oldest first. Without --cell: those of all cells.")
      .addOption(new Option("--cell <id>", "only leases of this cell").argParser(cellId))
      .option("--stale", "only leases that are open for 10 minutes, or for --older-than")
      .addOption(new Option("--older-than <time>", "only leases of at least this age").argParser(duration(0)))
      .addOption(limitOption())
      .action(run(listLeases)),
    ["leases ls --stale", "Leases that nobody has decided for 10 minutes"],
    ["leases ls --cell 7 --older-than 1h", "Leases of cell 7 that are older than an hour"],
  );
  withExamples(
    withCell(group.command("show").description("Show a lease with its names.")).action(run(showLease)),
    [`leases show ${EXAMPLE_ID} --cell 7`, "Show a lease of cell 7"],
  );
  for (const decision of ["commit", "rollback"] as const) {
    const about =
      decision === "commit"
        ? "Commit a lease that its cell cannot decide. This is final. The cell must have saved the rows."
        : "Roll back a lease that its cell cannot decide. This is final. The cell must have saved no rows.";
    withExamples(
      withChangeOptions(
        withCell(group.command(decision).description(about)).action(
          run((context, id: string, options: Parameters<typeof decide>[3]) =>
            decide(context, decision, id, options),
          ),
        ),
      ),
      [
        `leases ${decision} ${EXAMPLE_ID} --cell 7 --reason "cell 7 is gone, see its database"`,
        "Decide a lease of cell 7",
      ],
    );
  }
}

const withCell = (command: Command): Command =>
  command
    .argument("<uuid>", "the id of the lease", uuid)
    .addOption(new Option("--cell <id>", "the cell of the lease").argParser(cellId).makeOptionMandatory());

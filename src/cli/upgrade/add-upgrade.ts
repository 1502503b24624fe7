import type { Command } from "commander";
import { withExamples } from "../framework/arguments.ts";
import type { Run } from "../framework/run.ts";
import { withChangeOptions } from "../safety/confirm.ts";
import { finish, showUpgrade } from "./upgrade.ts";

export function addUpgrade(program: Command, run: Run): void {
  const group = program
    .command("upgrade")
    .description("Upgrades: see which versions the parts run, and finish.");
  withExamples(
    group
      .command("show", { isDefault: true })
      .description("Show the format in force, the newest one, and what keeps it from being put in force.")
      .action(run(showUpgrade)),
    ["upgrade", "See whether all parts run the new version"],
    ["upgrade show --json", "Show it for a program"],
  );
  withExamples(
    withChangeOptions(
      group
        .command("finish")
        .description("Put the newest format in force. There is no way back to the version before."),
    ).action(run(finish)),
    ["upgrade finish --dry-run", "See whether the upgrade can be finished"],
    ['upgrade finish --reason "a day without errors"', "Turn on what the new version brings"],
  );
}

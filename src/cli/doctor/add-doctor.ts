import { Option, type Command } from "commander";
import { withExamples } from "../framework/arguments.ts";
import type { Run } from "../framework/run.ts";
import { doctor } from "./doctor.ts";

export function addDoctor(program: Command, run: Run): void {
  const command = program
    .command("doctor")
    .description("Check everything that often goes wrong. It changes nothing. Exit code 1: a check failed.")
    .addOption(new Option("-o, --output <file>", "also write a bundle without names, keys or addresses"))
    .option("--no-probe", "don't send a request to the address of each cell")
    .action(run(doctor));
  withExamples(
    command,
    ["doctor", "Check the deployment that commands use"],
    ["doctor -o bundle.json", "Write a bundle that you can pass on"],
  );
}

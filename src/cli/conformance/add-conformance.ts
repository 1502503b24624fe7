import { Option, type Command } from "commander";
import { cellId, wholeNumber, withExamples } from "../framework/arguments.ts";
import type { Run } from "../framework/run.ts";
import type { ConformanceOptions } from "./conformance.ts";

/** Seeds fit into 32 bits. */
const MAX_SEED = 2 ** 32 - 1;
/** Checks that run at a time make as many calls at a time. */
const MAX_CONCURRENCY = 16;
const MAX_HISTORIES = 1_000;

export function addConformance(program: Command, run: Run): void {
  const command = program
    .command("conformance")
    .description("Test an implementation of the API from outside, by rule, with names of its own.")
    .addOption(new Option("--key <file>", "a file with the key of a cell; LEASEHOLD_KEY by default"))
    .addOption(
      new Option("--other-key <file>", "with the key of another cell; LEASEHOLD_OTHER_KEY by default"),
    )
    .addOption(new Option("--router-key <file>", "with the key of a router; LEASEHOLD_ROUTER_KEY by default"))
    .addOption(
      new Option("--operator-key <file>", "with the key of an operator; LEASEHOLD_OPERATOR_KEY by default"),
    )
    .addOption(new Option("--cell <id>", "the cell, if its key does not say it").argParser(cellId))
    .addOption(new Option("--other-cell <id>", "the other cell, likewise").argParser(cellId))
    .option("--only <rule...>", "only the checks of these rules, or with these ids")
    .option("--list", "list the checks, and run none")
    .addOption(
      new Option("--seed <number>", "repeats random choices; a new one by default").argParser(
        wholeNumber(0, MAX_SEED),
      ),
    )
    .addOption(
      new Option("--histories <count>", "histories of the linearizability check")
        .argParser(wholeNumber(1, MAX_HISTORIES))
        .default(10),
    )
    .addOption(
      new Option("--concurrency <count>", "checks at a time")
        .argParser(wholeNumber(1, MAX_CONCURRENCY))
        .default(4),
    )
    .option("--prefix <text>", "what names begin with; a new one by default")
    .option("--no-wire", "leave out the protobuf wire")
    .option("--type <type>", "the bucket type of the names")
    .option("--subject <type>", "their subject type")
    .option("--source <type>", "their source type")
    .option("--clean-up <prefix>", "only give up what an earlier run has left")
    .action(
      run(async (context, options: ConformanceOptions) => {
        // No other command needs the checks and the messages of the wire.
        const { conformance } = await import("./conformance.ts");
        return conformance(context, options);
      }),
    );
  withExamples(
    command,
    ["conformance --url http://127.0.0.1:8787 --key cell-1.key", "Test with the key of one cell"],
    ["conformance --other-key cell-2.key --only B2 C4 --json", "Test two rules, for a script"],
    ["conformance --list", "List the checks with their rules"],
    ["conformance --clean-up conformance-1f3b5c7d-", "Give up what a killed run has left"],
  );
}

import type { Command } from "commander";
import { withExamples } from "../framework/arguments.ts";
import type { Run } from "../framework/run.ts";
import { withChangeOptions } from "../safety/confirm.ts";
import { api } from "./api.ts";

export function addApi(program: Command, run: Run): void {
  const command = program
    .command("api")
    .description("Send one request to the API, and print its answer as it is.")
    .argument("<method>", "GET, POST, PUT, PATCH or DELETE")
    .argument("<path>", "the path with its query, such as /v1/limits")
    .option("--data <json>", "the body: JSON, @FILE, or @- for standard input")
    .option("--include", "print the status and the headers on standard error")
    .action(run(api));
  withChangeOptions(command, false);
  withExamples(
    command,
    ["api GET /v1/limits", "Show the limits"],
    ["api POST /v1/records/lookup --data @names.json", "Look up names from a file"],
  );
}

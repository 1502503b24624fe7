import { Option, type Command } from "commander";
import { withExamples } from "../framework/arguments.ts";
import type { Run } from "../framework/run.ts";
import { login } from "./login.ts";

export function addLogin(program: Command, run: Run): void {
  const command = program
    .command("login")
    .description("Check a key, and save it with the URL as a context. The key is typed, or piped in.")
    .addOption(new Option("--name <name>", "the name of the context; the host of the URL by default"))
    .action(run(login));
  withExamples(
    command,
    ["login --url https://leasehold.example.com", "Ask for the key"],
    ["login --url https://leasehold.example.com --name production < key.txt", "Read the key from a file"],
  );
}

/**
 * `npm run types -- plan|apply|show`: declares the types of a deployment, by calls to its API.
 * docs/guides/declare-types.md says how.
 */
import { parseArgs } from "node:util";
import { createClient, LeaseholdError, type Client } from "../src/client/index.ts";
import { declareTypes, readTypesFile } from "./types-file.ts";

const HELP = `Usage: npm run types -- <command> [options]

Declares which types of names, subjects and sources a deployment has. The operator key is read from the
environment variable LEASEHOLD_OPERATOR_KEY.

  plan             show what the file would change, and what is refused; changes nothing
  apply            make the deployment's types those of the file, all of it or nothing
  show             print the types of the deployment as a file, and say which are in use

  --file <path>    the file; leasehold.types.json by default
  --url <url>      the deployment; LEASEHOLD_URL by default
  --help           show this text
`;

const options = {
  file: { type: "string" },
  url: { type: "string" },
  help: { type: "boolean" },
} as const;

const COMMANDS = ["plan", "apply", "show"] as const;

interface Command {
  command: (typeof COMMANDS)[number];
  file: string;
  client: Client;
}

/** Undefined: the help was asked for. */
function commandOf(args: string[]): Command | undefined {
  const { values, positionals } = parseArgs({ args, options, allowPositionals: true });
  if (values.help === true) return undefined;
  const command = COMMANDS.find((each) => each === positionals[0]);
  if (command === undefined || positionals.length > 1)
    throw new Error(`give one command: ${COMMANDS.join(", ")}`);
  return {
    command,
    file: values.file ?? "leasehold.types.json",
    client: createClient({
      url: required(values.url ?? process.env["LEASEHOLD_URL"], "--url or LEASEHOLD_URL"),
      // No option: other users of the machine can read the arguments of a process.
      key: required(process.env["LEASEHOLD_OPERATOR_KEY"], "LEASEHOLD_OPERATOR_KEY"),
    }),
  };
}

function required(value: string | undefined, name: string): string {
  if (value === undefined || value === "") throw new Error(`${name} is required`);
  return value;
}

async function show(client: Client): Promise<void> {
  const { types, in_use: inUse } = await client.types.get();
  process.stdout.write(`${JSON.stringify(types, null, 2)}\n`);
  const lists = Object.entries(inUse).flatMap(([list, names]) => names.map((name) => `${list}.${name}`));
  process.stderr.write(`In use, so unchangeable: ${lists.join(", ") || "none"}.\n`);
}

async function main(): Promise<void> {
  const given = commandOf(process.argv.slice(2));
  if (given === undefined) {
    process.stdout.write(HELP);
    return;
  }
  const { command, file, client } = given;
  if (command === "show") return show(client);
  const { lines, isRefused } = await declareTypes(client, await readTypesFile(file), command === "plan");
  process.stdout.write(`${lines.join("\n")}\n`);
  if (isRefused) process.exitCode = 1;
}

main().catch((error: unknown) => {
  const detail = error instanceof Error ? error.message : String(error);
  const hint = error instanceof LeaseholdError ? "" : " (--help shows the usage)";
  process.stderr.write(`types: ${detail}${hint}\n`);
  process.exitCode = 1;
});

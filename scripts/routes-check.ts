/**
 * `npm run routes:check -- FILE...`: finds mistakes in routing rules before a router uses them.
 * docs/reference/routing-rules.md describes the rules.
 */
import { readFile, stat } from "node:fs/promises";
import { parseArgs } from "node:util";
import { gitlabTypes } from "../src/core/types/gitlab.ts";
import { parseJson } from "../src/http/json.ts";
import { checkRules, type RuleProblem } from "../src/router/rules/check.ts";
import { MAX_DOCUMENT_BYTES } from "../src/router/rules/limits.ts";
import { slowExpressions } from "./slow-expressions.ts";
import { readTypesFile } from "./types-file.ts";

const HELP = `Usage: npm run routes:check -- [options] FILE...

Checks files of routing rules: mistakes, rules that are never reached, regular expressions that can hold up a
router, bucket types that are not declared, and a missing fallback. Prints one line for each finding.

  --types <path>   the types of the deployment, as in leasehold.types.json; those of GitLab by default
  --json           print the findings as a JSON array
  --help           show this text

The exit code is 0 without findings, 1 with findings, and 2 if a file could not be checked.
`;

const options = {
  types: { type: "string" },
  json: { type: "boolean" },
  help: { type: "boolean" },
} as const;

/** White space between the rules may be as large as the rules. */
const MAX_FILE_BYTES = 2 * MAX_DOCUMENT_BYTES;

/** The reader of the rules has limits of its own, and names the field that is over one. */
const BOUNDS = { depth: 64, values: MAX_FILE_BYTES, items: () => undefined };

type FileProblem = RuleProblem & { file: string };

async function readRules(file: string): Promise<unknown> {
  const { size } = await stat(file);
  if (size > MAX_FILE_BYTES) throw new Error(`${file} is larger than ${MAX_FILE_BYTES} bytes`);
  const text = await readFile(file, "utf8");
  try {
    // Its message says where the text is wrong.
    JSON.parse(text);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`${file} is not JSON: ${why}`, { cause: error });
  }
  // `JSON.parse` alone would drop all but the last of several fields with one name.
  const document = parseJson(text, BOUNDS);
  if (!document.ok) throw new Error(`${file}: ${document.refusal.detail}`);
  return document.value;
}

async function bucketTypes(file: string | undefined): Promise<string[]> {
  const types = file === undefined ? gitlabTypes : await readTypesFile(file);
  return Object.keys(types.bucket_types);
}

function lineOf({ file, field, rule, kind, message }: FileProblem): string {
  const id = rule === null || field.startsWith(`${rule}.`) || rule === field ? "" : ` (${rule})`;
  return `${file}: ${field}${id}: ${kind}: ${message}`;
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({ args: process.argv.slice(2), options, allowPositionals: true });
  if (values.help === true) {
    process.stdout.write(HELP);
    return;
  }
  if (positionals.length === 0) throw new Error("give at least one file of rules");
  const checks = { bucketTypes: await bucketTypes(values.types), slowness: slowExpressions() };
  const problems: FileProblem[] = [];
  for (const file of positionals)
    for (const problem of checkRules(await readRules(file), checks)) problems.push({ file, ...problem });
  if (values.json === true) process.stdout.write(`${JSON.stringify(problems, null, 2)}\n`);
  else for (const problem of problems) process.stdout.write(`${lineOf(problem)}\n`);
  if (problems.length > 0) process.exitCode = 1;
}

main().catch((error: unknown) => {
  const detail = error instanceof Error ? error.message : String(error);
  process.stderr.write(`routes:check: ${detail} (--help shows the usage)\n`);
  process.exitCode = 2;
});

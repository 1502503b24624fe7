/** `npm run copy-state`: copies the state of a coordinator that is stopped. */
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { escapeLines } from "../../common/text/escape.ts";
import { copyState } from "./state-copy.ts";

const USAGE = `npm run copy-state -- --to FOLDER

  --to FOLDER   a folder that does not exist yet; it receives the copy
  --help        prints this text

Copies the state folder that LEASEHOLD_STATE names (.leasehold by default).
The coordinator must be stopped. The copy contains the signing secret.
`;

class BadOption extends Error {}

function folderOf(args: string[]): string | undefined {
  let values: { to?: string | undefined; help?: boolean | undefined };
  try {
    ({ values } = parseArgs({ args, options: { to: { type: "string" }, help: { type: "boolean" } } }));
  } catch (error) {
    throw new BadOption(error instanceof Error ? error.message : String(error));
  }
  if (values.help === true) return undefined;
  if (!values.to) throw new BadOption("--to must name the folder that receives the copy");
  return values.to;
}

async function main(): Promise<void> {
  const to = folderOf(process.argv.slice(2));
  if (to === undefined) {
    process.stdout.write(USAGE);
    return;
  }
  const from = resolve(process.env["LEASEHOLD_STATE"] || ".leasehold");
  const { files, bytes } = await copyState(from, to);
  process.stdout.write(`Copied ${from} to ${resolve(to)}: ${files} files, ${bytes} bytes.\n`);
}

main().catch((error: unknown) => {
  const message = escapeLines(error instanceof Error ? error.message : String(error));
  const isBad = error instanceof BadOption;
  process.stderr.write(isBad ? `${message}\n\n${USAGE}` : `copy-state: ${message}\n`);
  process.exitCode = isBad ? 2 : 1;
});

/** `npm run counts`: counts what each operation costs. The counts are the same on every machine. */
import { existsSync } from "node:fs";
import { parseArgs } from "node:util";
import { inFolder, parsed, runProgram } from "../program.ts";
import { countAll } from "./count-all.ts";
import { writePage } from "./report.ts";
import { jsonOf, tableOf } from "./table.ts";

const usage = `npm run counts -- [options]

  --json        print a JSON array with one line for each operation
  --write       write docs/bench/counts.md, too
  --help        print this help

It prints the rows written, messages, transactions, syncs and USD of each operation. A cycle is a begin, its
commit, and all that follows until the lease is forgotten. Names are placed on as many shards as possible.
Where "shards touched" has a fraction, a line is the exact mean over random names. Syncs are those of the
standalone server; all other figures are counted in workerd.
`;

interface Options {
  isJson: boolean;
  isWritten: boolean;
}

function readOptions(argv: readonly string[]): Options | undefined {
  const flag = { type: "boolean", default: false } as const;
  const options = { json: flag, write: flag, help: flag };
  const { json, write, help } = parsed(() => parseArgs({ args: [...argv], options }).values);
  return help ? undefined : { isJson: json, isWritten: write };
}

const count = ({ isJson, isWritten }: Options): Promise<void> =>
  inFolder("counts", async (folder) => {
    const counted = await countAll(folder);
    if (isWritten) writePage(counted);
    process.stdout.write(`${isJson ? jsonOf(counted) : tableOf(counted)}\n`);
  });

// No count depends on the disk, so the state is in memory where memory has a folder.
const MEMORY = "/dev/shm";
if (existsSync(MEMORY)) process.env["TMPDIR"] = MEMORY;

await runProgram({ name: "counts", usage, readOptions, run: count });

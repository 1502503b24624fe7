/** Measures how much one cell's calls slow down the begins of another cell. */
import { parseArgs } from "node:util";
import { BadOption, inFolder, parsed, runProgram } from "../program.ts";
import { Isolation, loads, type Load, type Scale } from "./isolation.ts";
import { tableOf } from "./table.ts";

const usage = `node bench/isolation/main.ts [options]

  --small       a small state and short rounds, to check that the benchmark works
  --claims N    claims of the cell that causes the load (default 1,000,000)
  --load NAME   only one kind of load: ${loads.join(", ")} (default: all)
  --help        print this help
`;

const FULL: Scale = { claims: 1_000_000, shards: 4, rounds: 3, seconds: 5 };
const SMALL: Scale = { claims: 2_000, shards: 4, rounds: 1, seconds: 0.5 };

interface Options {
  scale: Scale;
  loads: readonly Load[];
}

function readOptions(argv: readonly string[]): Options | undefined {
  const text = { type: "string" } as const;
  const flag = { type: "boolean" } as const;
  const values = parsed(
    () =>
      parseArgs({ args: [...argv], options: { small: flag, help: flag, claims: text, load: text } }).values,
  );
  if (values.help === true) return undefined;
  const known = loads.find((each) => each === values.load);
  if (values.load !== undefined && known === undefined)
    throw new BadOption(`--load takes ${loads.join(", ")}, not ${JSON.stringify(values.load)}`);
  const scale = values.small === true ? SMALL : FULL;
  const claims = values.claims === undefined ? scale.claims : Number(values.claims);
  if (!Number.isSafeInteger(claims) || claims < 1)
    throw new BadOption(`--claims takes a whole number above 0, not ${JSON.stringify(values.claims)}`);
  return { scale: { ...scale, claims }, loads: known === undefined ? loads : [known] };
}

async function measure({ scale, loads: chosen }: Options): Promise<void> {
  await inFolder("isolation", async (root, atEnd) => {
    const isolation = await Isolation.start(root, scale);
    atEnd(() => isolation.stop());
    for (const load of chosen) {
      const rounds = await isolation.measure(load);
      process.stdout.write(`${tableOf(load, rounds)}\n\n`);
    }
  });
}

await runProgram({ name: "isolation", usage, readOptions, run: measure });

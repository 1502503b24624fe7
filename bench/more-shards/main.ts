/** Measures how much a deployment that gets more shards slows down the begins of a cell. */
import { parseArgs } from "node:util";
import { inFolder, numberOf, parsed, runProgram } from "../program.ts";
import { MoreShards, type Scale } from "./more-shards.ts";
import { tableOf } from "./table.ts";

const usage = `node bench/more-shards/main.ts [options]

  --small       a small state and short measurements, to check that the benchmark works
  --claims N    stored claims (default 1,000,000)
  --from N      shards before (default 4)
  --to N        shards afterwards (default 16)
  --pause MS    pause after each request for steps (default 20)
  --help        print this help
`;

function readOptions(argv: readonly string[]): Scale | undefined {
  const text = { type: "string" } as const;
  const flag = { type: "boolean" } as const;
  const options = { small: flag, help: flag, claims: text, from: text, to: text, pause: text } as const;
  const values = parsed(() => parseArgs({ args: [...argv], options }).values);
  if (values.help === true) return undefined;
  const isSmall = values.small === true;
  return {
    claims: numberOf("claims", values.claims, isSmall ? 2_000 : 1_000_000),
    from: numberOf("from", values.from, 4),
    to: numberOf("to", values.to, 16),
    seconds: isSmall ? 0.5 : 10,
    pauseMs: numberOf("pause", values.pause, 20),
  };
}

async function measure(scale: Scale): Promise<void> {
  await inFolder("more-shards", async (root, atEnd) => {
    const running = await MoreShards.start(root, scale);
    atEnd(() => running.stop());
    process.stdout.write(`${tableOf(await running.measure())}\n`);
  });
}

await runProgram({ name: "more-shards", usage, readOptions, run: measure });

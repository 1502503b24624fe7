/** Measures what a cycle, a lookup and a page of leases cost as a deployment grows. */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Growth, type GrowthScale } from "./growth.ts";
import { codeVersion } from "../code-version.ts";
import { BadOption, inFolder, parsed, runProgram } from "../program.ts";
import { Results } from "./results.ts";
import { tableOf } from "./table.ts";
import { axes, variantsOf, type Axis, type Extent } from "./variants.ts";

const usage = `node bench/growth/main.ts [options]

  --targets     only the claims that the performance targets need, and fewer rounds
  --small       small states and short rounds, to check that the benchmark works
  --axis NAME   measure only one axis: ${axes.join(", ")} (default: all)
  --help        print this help
`;

const scales: Record<Extent, GrowthScale> = {
  full: { rounds: 5, seconds: 2, warmUpSeconds: 1 },
  targets: { rounds: 3, seconds: 2, warmUpSeconds: 1 },
  small: { rounds: 2, seconds: 0.3, warmUpSeconds: 0.1 },
};

const print = (line: string): void => void process.stdout.write(`${line}\n`);

interface Options {
  extent: Extent;
  axes: readonly Axis[];
}

function readOptions(argv: readonly string[]): Options | undefined {
  const flag = { type: "boolean" } as const;
  const options = { targets: flag, small: flag, axis: { type: "string" }, help: flag } as const;
  const { targets, small, axis, help } = parsed(() => parseArgs({ args: [...argv], options }).values);
  if (help === true) return undefined;
  const known = axes.find((each) => each === axis);
  if (axis !== undefined && known === undefined)
    throw new BadOption(`--axis takes ${axes.join(", ")}, not ${JSON.stringify(axis)}`);
  const extent = small === true ? "small" : targets === true ? "targets" : "full";
  return { extent, axes: known === undefined ? axes : [known] };
}

async function measure({ extent, axes: chosen }: Options): Promise<void> {
  const commit = codeVersion();
  const results = new Results(
    join(import.meta.dirname, "../../.bench", extent === "small" ? "growth-small.jsonl" : "growth.jsonl"),
  );
  await inFolder("growth", async (root, atEnd) => {
    for (const axis of chosen) {
      const variants = variantsOf(axis, extent);
      if (variants.length === 0) continue;
      const running = new Growth(axis, variants, scales[extent], results, commit, root, print);
      atEnd(() => running.stop());
      await running.run();
      await running.stop();
      print(`\n${tableOf(axis, results.of(commit, axis))}\n`);
    }
    const errors = chosen
      .flatMap((axis) => results.of(commit, axis))
      .reduce((sum, result) => sum + result.errors, 0);
    if (errors > 0) throw new Error(`${errors} turns ended with an unexpected answer`);
  });
}

await runProgram({ name: "growth", usage, readOptions, run: measure });

/** Measures how much one cell's calls slow down the begins of another cell. */
import { parseArgs } from "node:util";
import { BadOption, inFolder, numberOf, parsed, runProgram } from "../program.ts";
import { Isolation, type Scale } from "./isolation.ts";
import { loads, servers, serversOf, type Load, type Server } from "./loads.ts";
import { tableOf } from "./table.ts";

const usage = `node bench/isolation/main.ts [options]

  --small       a small state and short rounds, to check that the benchmark works
  --claims N    claims of the cell that causes the load (default 1,000,000)
  --load NAME   only one kind of load: ${loads.join(", ")} (default: all)
  --server NAME only one server: ${servers.join(", ")} (default: both)
  --help        print this help
`;

const FULL: Scale = { claims: 1_000_000, shards: 4, rounds: 5, seconds: 2 };
const SMALL: Scale = { claims: 2_000, shards: 4, rounds: 1, seconds: 0.5 };

interface Options {
  scale: Scale;
  loads: readonly Load[];
  servers: readonly Server[];
}

function readOptions(argv: readonly string[]): Options | undefined {
  const text = { type: "string" } as const;
  const flag = { type: "boolean" } as const;
  const values = parsed(
    () =>
      parseArgs({
        args: [...argv],
        options: { small: flag, help: flag, claims: text, load: text, server: text },
      }).values,
  );
  if (values.help === true) return undefined;
  const scale = values.small === true ? SMALL : FULL;
  return {
    scale: { ...scale, claims: numberOf("claims", values.claims, scale.claims) },
    loads: chosen("load", loads, values.load),
    servers: chosen("server", servers, values.server),
  };
}

/** The one that an option names, or all. */
function chosen<Name extends string>(
  option: string,
  names: readonly Name[],
  given: string | undefined,
): readonly Name[] {
  const known = names.find((each) => each === given);
  if (known !== undefined) return [known];
  if (given === undefined) return names;
  throw new BadOption(`--${option} takes ${names.join(", ")}, not ${JSON.stringify(given)}`);
}

async function measure({ scale, loads: kinds, servers: programs }: Options): Promise<void> {
  for (const server of programs) {
    const its = kinds.filter((load) => serversOf(load).includes(server));
    if (its.length === 0) continue;
    await inFolder("isolation", async (root, atEnd) => {
      // Filling takes minutes, and only readers need many claims.
      const claims = its.includes("readers") ? scale.claims : SMALL.claims;
      const isolation = await Isolation.start(root, server, { ...scale, claims });
      atEnd(() => isolation.stop());
      for (const load of its) {
        const rounds = await isolation.measure(load);
        process.stdout.write(`${tableOf(`${server}, ${load}`, rounds)}\n\n`);
      }
    });
  }
}

await runProgram({ name: "isolation", usage, readOptions, run: measure });

import { parseArgs } from "node:util";
import { BadOption, parsed } from "./program.ts";
import { peerNames, type PeerName } from "./peers.ts";

/**
 * The order matters: `refusals` is last because its begins without a commit leave leases outstanding, which
 * would affect later measurements.
 */
const measuredParts = ["cycles", "lookups", "load", "knee", "fsyncs", "refusals"] as const;
/** A part that compares the peers. */
export type Part = (typeof measuredParts)[number];
const ownParts = ["growth", "isolation", "verification"] as const;
/** A part that measures only Leasehold, in a program of its own. */
export type OwnPart = (typeof ownParts)[number];
const parts = [...measuredParts, ...ownParts] as const;
export const isOwn = (part: Part | OwnPart): part is OwnPart =>
  (ownParts as readonly string[]).includes(part);

/** These parts take long, so only a full run includes them by default. */
const SLOW_PARTS = new Set<Part | OwnPart>(["isolation", "verification"]);
const QUICK_PARTS = parts.filter((part) => !SLOW_PARTS.has(part));

export const usage = `npm run bench -- [options]

  --full           measure longer and in more rounds; continues an interrupted run of the same commit
  --only NAMES     comma-separated peers: ${peerNames.join(", ")}
                   (default: all)
  --parts NAMES    comma-separated parts: ${parts.join(", ")}
                   (default: all with --full, otherwise all except isolation and verification; without
                   --full, growth is only what the performance targets need)
  --fresh          with --full: discard the earlier results of this commit and start again
  --report         write the report of earlier measurements, without measuring; add --full for the full run
  --help           print this help
`;

export interface Options {
  full: boolean;
  fresh: boolean;
  reportOnly: boolean;
  /** Whether neither `--only` nor `--parts` was given. */
  isWhole: boolean;
  only: readonly PeerName[];
  parts: readonly (Part | OwnPart)[];
}

/** Returns undefined when only the usage was asked for. Throws `BadOption` for a wrong option. */
export function readOptions(argv: readonly string[]): Options | undefined {
  const values = argumentsOf(argv);
  if (values.help === true) return undefined;
  return {
    full: values.full === true,
    fresh: values.fresh === true,
    reportOnly: values.report === true,
    isWhole: values.only === undefined && values.parts === undefined,
    only: listed("only", values.only, peerNames),
    parts:
      values.parts === undefined && values.full !== true ? QUICK_PARTS : listed("parts", values.parts, parts),
  };
}

function argumentsOf(argv: readonly string[]) {
  const flag = { type: "boolean" } as const;
  const text = { type: "string" } as const;
  const options = { full: flag, fresh: flag, report: flag, help: flag, only: text, parts: text } as const;
  return parsed(() => parseArgs({ args: [...argv], options }).values);
}

function listed<T extends string>(
  name: string,
  given: string | undefined,
  known: readonly T[],
): readonly T[] {
  if (given === undefined) return known;
  return given.split(",").map((each) => {
    const found = known.find((one) => one === each);
    if (found === undefined)
      throw new BadOption(`--${name} takes ${known.join(", ")}, not ${JSON.stringify(each)}`);
    return found;
  });
}

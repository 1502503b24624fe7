import { parseArgs } from "node:util";
import { BadOption, parsed } from "./program.ts";
import { peerNames, type PeerName } from "./peers.ts";

/** In this order: begins alone, of the last, leave leases behind that the others would have to live with. */
const measuredParts = ["cycles", "lookups", "load", "knee", "fsyncs", "refusals"] as const;
/** Of the peers, beside each other. */
export type Part = (typeof measuredParts)[number];
const ownParts = ["counts", "growth", "verification"] as const;
/** Of Leasehold alone, each a program of its own. */
export type OwnPart = (typeof ownParts)[number];
const parts = [...measuredParts, ...ownParts] as const;
export const isOwn = (part: Part | OwnPart): part is OwnPart =>
  (ownParts as readonly string[]).includes(part);

/** These take their time. */
const SLOW_PARTS = new Set<Part | OwnPart>(["growth", "verification"]);
const QUICK_PARTS = parts.filter((part) => !SLOW_PARTS.has(part));

export const usage = `npm run bench -- [options]

  --full           longer, and with more rounds; what is done already is kept and not done again
  --only NAMES     peers, with commas between them (${peerNames.join(", ")})
  --parts NAMES    what to measure: ${parts.join(", ")}; growth and verification are left out by default, but not of a full run
  --fresh          with --full: forgets what was measured before of this commit
  --report         writes the report of what was measured, and measures nothing; with --full, of the full run
  --help           this
`;

export interface Options {
  full: boolean;
  fresh: boolean;
  reportOnly: boolean;
  /** Nothing is left out. */
  isWhole: boolean;
  only: readonly PeerName[];
  parts: readonly (Part | OwnPart)[];
}

/** Throws `BadOption` with what is wrong; undefined when only the usage was asked for. */
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
      throw new BadOption(`--${name} knows ${known.join(", ")}, not ${JSON.stringify(each)}`);
    return found;
  });
}

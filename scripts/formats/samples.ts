/** A value of each kind in `sample-kinds.ts`, and the comparison with those of a release. */
import { isDeepStrictEqual } from "node:util";
import type { Difference } from "./difference.ts";
import { kinds, type Kind } from "./sample-kinds.ts";

interface Sample {
  text: string;
  /** What it was read as. */
  value: unknown;
}

export type Samples = Readonly<Record<string, Sample>>;

const valueOf = async ({ read = (text) => text }: Kind, text: string): Promise<unknown> =>
  JSON.parse(JSON.stringify((await read(text)) ?? null)) as unknown;

/** Makes a sample of each kind. */
export async function samplesOfToday(): Promise<Samples> {
  const samples: Record<string, Sample> = {};
  for (const [name, kind] of Object.entries(kinds)) {
    const text = await kind.make();
    samples[name] = { text, value: await valueOf(kind, text) };
  }
  return samples;
}

/** Returns the values of the release that this code cannot read, or now writes in another way. */
export async function sampleDifferences(release: Samples, today = kinds): Promise<Difference[]> {
  const differences: Difference[] = [];
  for (const [what, { text, value }] of Object.entries(release)) {
    const fault = await faultOf(today[what], text, value);
    if (fault !== undefined) differences.push({ what, fault });
  }
  return differences;
}

async function faultOf(kind: Kind | undefined, text: string, value: unknown): Promise<string | undefined> {
  if (kind === undefined) return "it was removed";
  try {
    const read = await valueOf(kind, text);
    if (!isDeepStrictEqual(read, value))
      return `this code reads it as ${JSON.stringify(read)}, and the release as ${JSON.stringify(value)}`;
  } catch (error) {
    return `this code cannot read it: ${error instanceof Error ? error.message : String(error)}`;
  }
  if (kind.isRandom === true) return undefined;
  const written = await kind.make();
  return written === text ? undefined : `this code writes \`${written}\`, and the release \`${text}\``;
}

/** The description of all formats of a version, as a folder of `formats/` has it. */
import { existsSync, globSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { apiDifferences, apiOfToday, type Api } from "./api.ts";
import type { Difference } from "./difference.ts";
import { sampleDifferences, samplesOfToday, type Samples } from "./samples.ts";
import { tableDifferences, tablesOfToday, type Tables } from "./tables.ts";
import { typeDifferences, typesOfToday, type Types } from "./types.ts";
import { writeFiles } from "./write-files.ts";

export interface Description {
  types: Types;
  tables: Tables;
  api: Api;
  samples: Samples;
}

const JSON_FILES = ["levels", "tables", "api", "samples"] as const;
type JsonFile = (typeof JSON_FILES)[number];

/** Describes this code. */
export const describeToday = async (): Promise<Description> => ({
  types: typesOfToday(),
  tables: tablesOfToday(),
  api: apiOfToday(),
  samples: await samplesOfToday(),
});

export function writeDescription(folder: string, { types, tables, api, samples }: Description): void {
  const contents = { levels: types.levels, tables, api, samples } satisfies Record<JsonFile, unknown>;
  rmSync(join(folder, "types"), { recursive: true, force: true });
  writeFiles(join(folder, "types"), types.declarations);
  writeFiles(
    folder,
    Object.fromEntries(Object.entries(contents).map(([name, content]) => [`${name}.json`, linesOf(content)])),
  );
}

export function readDescription(folder: string): Description {
  const read = (path: string): string => readFileSync(join(folder, path), "utf8");
  const { levels, tables, api, samples } = Object.fromEntries(
    JSON_FILES.map((name) => [name, JSON.parse(read(`${name}.json`)) as unknown]),
  ) as Omit<Description, "types"> & Pick<Types, "levels">;
  const paths = globSync("**/*.d.ts", { cwd: join(folder, "types") });
  return {
    types: {
      levels,
      declarations: Object.fromEntries(paths.map((path) => [path, read(join("types", path))])),
    },
    tables,
    api,
    samples,
  };
}

/** Each kind of difference, with what to do about it. */
export const ADVICE = {
  types:
    "Add an optional field instead, and keep the others. If code of the release must not get a new value, " +
    "write it only when the format in force says that every part reads it.",
  tables: "Leave the statements and files of the release as they are, and add a step or a migration.",
  api: "Clients of the release must go on working: add an optional field, a parameter or a path instead.",
  samples:
    "Read both forms, and write the form of the release until the format in force says that every part " +
    "reads the new one.",
} as const satisfies Record<keyof Description, string>;

export type Differences = Readonly<Record<keyof Description, readonly Difference[]>>;

/** Compares this code with a release. */
export const differencesFrom = async (release: Description): Promise<Differences> => ({
  types: typeDifferences(release.types, typesOfToday()),
  tables: tableDifferences(release.tables, tablesOfToday()),
  api: apiDifferences(release.api, apiOfToday()),
  samples: await sampleDifferences(release.samples),
});

/** Returns the newest version that a folder describes, other than `except`. */
export function newestVersion(formats: string, except?: string): string | undefined {
  const versions = existsSync(formats) ? readdirSync(formats) : [];
  return versions
    .filter((name) => /^\d+\.\d+\.\d+$/.test(name) && name !== except)
    .toSorted((a, b) => a.localeCompare(b, "en", { numeric: true }))
    .at(-1);
}

/** JSON with a line for each value of the third level, so that a diff shows what has changed. */
function linesOf(value: unknown, depth = 0): string {
  if (depth === 3 || typeof value !== "object" || value === null) return JSON.stringify(value);
  const indent = "  ".repeat(depth + 1);
  const isList = Array.isArray(value);
  const members = Object.entries(value).map(
    ([name, each]) => `${indent}${isList ? "" : `${JSON.stringify(name)}: `}${linesOf(each, depth + 1)}`,
  );
  const [open, close] = isList ? "[]" : "{}";
  return members.length === 0
    ? `${open}${close}`
    : `${open}\n${members.join(",\n")}\n${"  ".repeat(depth)}${close}${depth === 0 ? "\n" : ""}`;
}

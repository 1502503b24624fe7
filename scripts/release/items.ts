/** What must be true of a commit before it is tagged, apart from what commands check. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { FORMATS } from "../../src/coordinator/kernel/formats.ts";
import {
  newestVersion,
  readDescription,
  type Description,
  type Differences,
} from "../formats/description.ts";
import { readAccepted, reportOf } from "../formats/report.ts";
import { missingStates } from "../formats/states.ts";
import type { Tables } from "../formats/tables.ts";
import type { Check } from "./run-items.ts";

/** A commit that is to become a release. */
export interface Release {
  /** The folder of the repository. */
  root: string;
  /** The version in package.json. */
  version: string;
  formats: typeof FORMATS;
  /** Describes the code. */
  describe: () => Promise<Description>;
  /** Compares the code with a release. */
  differencesFrom: (release: Description) => Promise<Differences>;
}

type Item = (release: Release) => ReturnType<Check>;

const WRITE = "run `npm run check:formats -- --write`";

const gitLines = (root: string, ...args: string[]): string[] =>
  execFileSync("git", args, { cwd: root, encoding: "utf8" }).split("\n").filter(Boolean);

const textOf = ({ root }: Release, path: string): string => readFileSync(join(root, path), "utf8");

const formatsOf = ({ root }: Release): string => join(root, "formats");

const descriptionOf = (release: Release): string => join(formatsOf(release), release.version);

const previousOf = (release: Release): string | undefined =>
  newestVersion(formatsOf(release), release.version);

const cleanTree: Item = ({ root }) => {
  const paths = gitLines(root, "status", "--porcelain").map((line) => line.slice(3));
  return paths.length === 0 ? undefined : `commit or remove ${paths.join(", ")}`;
};

const nextVersion: Item = ({ root, version }) => {
  const tags = gitLines(root, "tag", "--list", "--sort=version:refname", "v*");
  if (tags.includes(`v${version}`))
    return `${version} has a tag already: set the next version with \`npm version --no-git-tag-version\``;
  const newest = tags.findLast((tag) => /^v\d+\.\d+\.\d+$/.test(tag))?.slice(1);
  if (newest === undefined) return undefined;
  const [major = 0, minor = 0, patch = 0] = newest.split(".").map(Number);
  const next = [`${major}.${minor}.${patch + 1}`, `${major}.${minor + 1}.0`, `${major + 1}.0.0`];
  return next.includes(version)
    ? undefined
    : `${version} does not follow ${newest}: set ${next.join(", ")} in package.json`;
};

interface OpenApi {
  info: { version: string };
}

/** Files that have the version: what each has, and what to do if it is another one. */
const VERSIONED: readonly [string, (text: string) => (string | undefined)[], string][] = [
  ["package-lock.json", (text) => lockVersions(text), "run `npm version --no-git-tag-version`"],
  ["openapi.json", (text) => [(JSON.parse(text) as OpenApi).info.version], "run `npm run generate:openapi`"],
  ["src/coordinator/api/version.ts", (text) => matches(text, /VERSION = "(.*)"/g), "correct it"],
  ["src/users/cell/sdk.ts", (text) => matches(text, /version: "(.*)"/g), "correct it"],
  [
    "docs/guides/make-a-table-claimable.md",
    (text) => matches(text, /leasehold-(\d+\.\d+\.\d+)\.tgz/g),
    "correct it",
  ],
];

function lockVersions(text: string): string[] {
  const { version, packages } = JSON.parse(text) as {
    version: string;
    packages: { "": { version: string } };
  };
  return [version, packages[""].version];
}

const matches = (text: string, pattern: RegExp): (string | undefined)[] =>
  [...text.matchAll(pattern)].map(([, version]) => version);

const sameVersion: Item = (release) => {
  const faults = VERSIONED.flatMap(([path, read, advice]) => {
    const versions = read(textOf(release, path));
    const other = versions.length === 0 ? "no version" : versions.find((each) => each !== release.version);
    return other === undefined ? [] : [`${path} has ${other}: ${advice}`];
  });
  return faults.length === 0 ? undefined : faults.join("; ");
};

const changelog: Item = (release) => {
  const [section = ""] = textOf(release, "CHANGELOG.md").split(/^## /m).slice(1);
  const [title = "", ...lines] = section.split("\n");
  if (title !== release.version)
    return `CHANGELOG.md begins with a section \`${title}\`: write one for ${release.version}`;
  const parts = lines.join("\n").split(/^### /m);
  const partOf = (name: string): string | undefined => parts.find((part) => part.startsWith(`${name}\n`));
  const missing = ["For cell authors", "For operators"].filter((name) => partOf(name) === undefined);
  if (missing.length > 0) return `CHANGELOG.md lacks the section \`${missing.join("`, `")}\` of ${title}`;
  const sentence = `This version has format ${release.formats.length}`;
  const operators = partOf("For operators")?.replaceAll(/\s+/g, " ");
  return new RegExp(`${sentence}\\b`).test(operators ?? "")
    ? undefined
    : `CHANGELOG.md must say in the section for operators: "${sentence}."`;
};

const description: Item = async (release) => {
  const folder = descriptionOf(release);
  if (!existsSync(folder)) return `there is no formats/${release.version}: ${WRITE}`;
  const [written, today] = [readDescription(folder), await release.describe()];
  const namesOf = ({ samples }: Description): string[] => Object.keys(samples).toSorted();
  // Some samples differ each time. `check:formats` compares their values.
  const differing = (["types", "tables", "api"] as const).filter(
    (part) => !isDeepStrictEqual(written[part], JSON.parse(JSON.stringify(today[part]))),
  );
  const parts = isDeepStrictEqual(namesOf(written), namesOf(today)) ? differing : [...differing, "samples"];
  return parts.length === 0
    ? undefined
    : `formats/${release.version} has other ${parts.join(", ")} than the code: ${WRITE}`;
};

const states: Item = (release) => {
  const missing = missingStates(descriptionOf(release));
  return missing.length === 0
    ? undefined
    : `formats/${release.version} lacks ${missing.join(", ")}: ${WRITE}, and commit the files`;
};

const besidePrevious: Item = async (release) => {
  const previous = previousOf(release);
  if (previous === undefined) return undefined;
  const folder = join(formatsOf(release), previous);
  const differences = await release.differencesFrom(readDescription(folder));
  const report = reportOf(previous, differences, readAccepted(folder));
  return report === "" ? undefined : report.split("\n").filter(Boolean).join(" ");
};

const newFormat: Item = (release) => {
  const previous = previousOf(release);
  const before =
    previous === undefined
      ? 0
      : (JSON.parse(textOf(release, `formats/${previous}/tables.json`)) as Tables).steps["every format"]
          ?.length;
  if (before === undefined) return `formats/${previous}/tables.json lists no formats`;
  const added = release.formats.slice(before).map(({ release: version }) => version);
  if (added.length > 1)
    return `src/coordinator/kernel/formats.ts has ${added.length} new entries: leave one of them`;
  return added.every((version) => version === release.version)
    ? undefined
    : `the last entry of src/coordinator/kernel/formats.ts names ${added.join()}: ` +
        `let it name ${release.version}`;
};

/** By the names with which they are printed, the quick ones first. */
export const items: Readonly<Record<string, Item>> = {
  "the tree is clean": cleanTree,
  "the version is the next one": nextVersion,
  "every file has the version": sameVersion,
  "the changelog is complete": changelog,
  "a new format names the version": newFormat,
  "the states are kept": states,
  "formats/ describes the code": description,
  "the code works beside the version before": besidePrevious,
};

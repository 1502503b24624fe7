/** Each item of `npm run release:check`, on a repository in which one thing is wrong. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { writeDescription, type Description } from "../../scripts/formats/description.ts";
import { writeFiles } from "../../scripts/formats/write-files.ts";
import { items, type Release } from "../../scripts/release/items.ts";
import { runItems } from "../../scripts/release/run-items.ts";

const GUIDE = "docs/guides/make-a-table-claimable.md";

const descriptionWith = (formats: readonly string[]): Description => ({
  types: { levels: {}, declarations: { "shapes.d.ts": "export {};\n" } },
  tables: { steps: { "every format": formats }, migrations: {} },
  api: { openapi: "3.1.0" } as unknown as Description["api"],
  samples: {},
});
const BEFORE = descriptionWith(["0.2.0"]);
const TODAY = descriptionWith(["0.2.0", "0.3.0"]);

let release: Release;

const git = (...args: string[]): string =>
  execFileSync("git", ["-c", "user.name=Test", "-c", "user.email=test@example.com", ...args], {
    cwd: release.root,
    encoding: "utf8",
  });

/** Replaces a text in a file. */
function change(path: string, from: string | RegExp, to: string): void {
  const file = join(release.root, path);
  const text = readFileSync(file, "utf8");
  const changed = text.replace(from, to);
  expect(changed).not.toBe(text);
  writeFileSync(file, changed);
}

const faults = async (): Promise<Record<string, string>> =>
  Object.fromEntries(
    await Promise.all(
      Object.entries(items).map(async ([name, item]) => [name, (await item(release)) ?? "ok"] as const),
    ),
  );

const RIGHT = Object.fromEntries(Object.keys(items).map((name) => [name, "ok"]));

/** The item that has this fault. All others are right, apart from that of the clean tree. */
async function expectFault(name: string, fault: string | RegExp): Promise<void> {
  const { "the tree is clean": tree, ...others } = await faults();
  const { "the tree is clean": _, ...right } = RIGHT;
  expect(tree).toBeDefined();
  expect(others).toEqual({ ...right, [name]: expect.stringMatching(fault) as unknown });
}

beforeEach(() => {
  const root = mkdtempSync(join(tmpdir(), "leasehold-release-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  release = {
    root,
    version: "0.3.0",
    formats: [
      { release: "0.2.0", features: [] },
      { release: "0.3.0", features: [] },
    ],
    describe: async () => TODAY,
    differencesFrom: async () => ({ types: [], tables: [], api: [], samples: [] }),
  };
  const states = ["start", "standalone"].flatMap((name) => [`${name}.json.br`, `${name}.found.json`]);
  writeFiles(root, {
    "package-lock.json": JSON.stringify({ version: "0.3.0", packages: { "": { version: "0.3.0" } } }),
    "openapi.json": JSON.stringify({ info: { version: "0.3.0" } }),
    "src/coordinator/api/version.ts": 'export const VERSION = "0.3.0";\n',
    "src/users/cell/sdk.ts": 'export const SDK = { name: "leasehold", version: "0.3.0" } as const;\n',
    [GUIDE]: "leasehold-0.3.0.tgz\nleasehold-0.3.0.tgz\n",
    "CHANGELOG.md":
      "# Changelog\n\n## 0.3.0\n\n### For cell authors\n\n- a\n\n### For operators\n\n- This version\n" +
      "  has format 2.\n\n## 0.2.0\n\n### For cell authors\n\n### For operators\n\n- Nothing.\n",
    ...Object.fromEntries(states.map((path) => [`formats/0.3.0/states/${path}`, ""])),
  });
  writeDescription(join(root, "formats/0.2.0"), BEFORE);
  writeDescription(join(root, "formats/0.3.0"), TODAY);
  git("init", "--quiet");
  git("add", "--all");
  git("commit", "--quiet", "--message", "all");
  git("tag", "v0.2.0");
});

test("a commit with which everything is right", async () => {
  expect(await faults()).toEqual(RIGHT);
});

test("a file that is not committed", async () => {
  writeFileSync(join(release.root, "more"), "");
  expect(await faults()).toEqual({ ...RIGHT, "the tree is clean": "commit or remove more" });
});

test.each([
  ["v0.3.0", "0.3.0 has a tag already: set the next version"],
  ["v0.10.0", "0.3.0 does not follow 0.10.0: set 0.10.1, 0.11.0, 1.0.0 in package.json"],
])("the tag %s", async (tag, fault) => {
  git("tag", tag);
  await expectFault("the version is the next one", fault);
});

test("no tag at all", async () => {
  git("tag", "--delete", "v0.2.0");
  expect(await faults()).toEqual(RIGHT);
});

test.each([
  ["package-lock.json", "0.3.0", "0.2.0", "package-lock.json has 0.2.0: run `npm version"],
  ["package-lock.json", /0\.3\.0(?="}}})/, "0.2.0", "package-lock.json has 0.2.0"],
  ["openapi.json", "0.3.0", "0.2.0", "openapi.json has 0.2.0: run `npm run generate:openapi`"],
  [
    "src/coordinator/api/version.ts",
    "0.3.0",
    "0.2.0",
    "src/coordinator/api/version.ts has 0.2.0: correct it",
  ],
  ["src/users/cell/sdk.ts", 'version: "0.3.0"', "", "src/users/cell/sdk.ts has no version: correct it"],
  [GUIDE, /0\.3\.0(?=\.tgz\n$)/, "0.2.0", "claimable.md has 0.2.0: correct it"],
])("another version in %s", async (path, from, to, fault) => {
  change(path, from, to);
  await expectFault("every file has the version", fault);
});

test.each([
  ["section", "## 0.3.0", "## Unreleased", "begins with a section `Unreleased`: write one for 0.3.0"],
  ["part for cell authors", "### For cell authors", "### Cells", "lacks the section `For cell authors`"],
  ["part for operators", "### For operators", "### Operators", "lacks the section `For operators`"],
  ["format", "has format 2.", "has format 1.", 'must say .*: "This version has format 2."'],
  ["whole format", "has format 2.", "has format 21.", 'must say .*: "This version has format 2."'],
])("a changelog without its %s", async (_, from, to, fault) => {
  change("CHANGELOG.md", from, to);
  await expectFault("the changelog is complete", fault);
});

test("a description of other code, and none", async () => {
  const name = "formats/ describes the code";
  writeDescription(join(release.root, "formats/0.3.0"), {
    ...TODAY,
    types: BEFORE.types,
    tables: BEFORE.tables,
  });
  await expectFault(
    name,
    "^formats/0.3.0 has other tables than the code: run `npm run check:formats -- --write`",
  );
  const more = { key: { text: "lhk_", value: null } };
  writeDescription(join(release.root, "formats/0.3.0"), { ...TODAY, samples: more });
  await expectFault(name, "^formats/0.3.0 has other samples than the code");
  rmSync(join(release.root, "formats/0.3.0"), { recursive: true });
  expect(await faults()).toMatchObject({
    [name]: expect.stringMatching("there is no formats/0.3.0") as unknown,
  });
});

test("a state that is missing", async () => {
  rmSync(join(release.root, "formats/0.3.0/states/start.json.br"));
  await expectFault("the states are kept", "formats/0.3.0 lacks states/start.json.br: run");
});

test("code that cannot work beside the version before, and an accepted difference that is none", async () => {
  const name = "the code works beside the version before";
  const { differencesFrom } = release;
  release.differencesFrom = async (from) => {
    expect(from).toEqual(BEFORE);
    return { types: [], tables: [{ what: "shard", fault: "step 1 was removed" }], api: [], samples: [] };
  };
  await expectFault(name, "This code and 0.2.0 could not work side by side.* shard: step 1 was removed");
  release.differencesFrom = differencesFrom;
  const accepted = JSON.stringify({ "shard: step 1 was removed": "nobody has it" });
  writeFileSync(join(release.root, "formats/0.2.0/accepted.json"), accepted);
  await expectFault(name, "accepted.json has a difference that is not there: shard: step 1 was removed");
});

test("formats that name another version, or several", async () => {
  const name = "a new format names the version";
  const [first, second] = release.formats;
  if (first === undefined || second === undefined) throw new Error("there are fewer formats");
  release.formats = [first, { ...second, release: "0.4.0" }];
  await expectFault(
    name,
    "the last entry of src/coordinator/kernel/formats.ts names 0.4.0: let it name 0.3.0",
  );
  release.formats = [first, second, second];
  expect(await faults()).toMatchObject({
    [name]: "src/coordinator/kernel/formats.ts has 2 new entries: leave one of them",
  });
});

test("all items run and are printed, also after one that fails", async () => {
  const lines: string[] = [];
  const checks = {
    first: () => "it is wrong: do this",
    second: () => {
      throw new Error("it cannot be read");
    },
    third: async () => undefined,
  };
  expect(await runItems(checks, (line) => lines.push(line))).toBe(false);
  expect(lines).toEqual([
    "FAILED: first: it is wrong: do this",
    "FAILED: second: it cannot be read",
    "ok: third",
  ]);
  expect(await runItems({ third: checks.third }, () => {})).toBe(true);
});

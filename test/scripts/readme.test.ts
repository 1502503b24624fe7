/** What the README says and shows is true. Its code is compiled with the package's other examples. */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { MAX_NAMES } from "../../demo/names.ts";
import { renderConclusion } from "../../demo/report.ts";
import manifest from "../../package.json" with { type: "json" };
import { defaultLimits } from "../../src/common/limits.ts";

const root = join(import.meta.dirname, "../..");
const read = (path: string): string => readFileSync(join(root, path), "utf8");
const readme = read("README.md");
const MAX_WORDS = 600;
const MAX_PICTURE_BYTES = 150_000;

const found = (pattern: RegExp, text = readme): string[] =>
  [...text.matchAll(pattern)].map(([whole, group]) => group ?? whole);

test("has at most 600 words", () => {
  expect(found(/\S+/g).length).toBeLessThanOrEqual(MAX_WORDS);
});

test("begins with the demo, then the tests, as CI runs them", () => {
  const [demo = "", tests = ""] = found(/^```sh\n(.*?)\n```$/gms);
  expect(demo).toBe("npm install && npm run demo");
  expect(read(".ci/run")).toContain(`(${tests}) `);
  expect(tests).toBe("npm install && npm run setup && npm test");
  expect(Object.keys(manifest.scripts)).toEqual(expect.arrayContaining(found(/\bnpm run ([\w:-]+)/g)));
});

test("has the figures of the code", () => {
  const [version = "none"] = found(/^\*\*Status:\*\* ([\d.]+),/gm);
  expect(`${version}.`).toBe(manifest.version.replace(/\d+$/, ""));
  expect(readme).toContain(`compete for ${MAX_NAMES.toLocaleString("en-US")} names`);
  expect(readme).toContain(`up to ${defaultLimits.maxCells.toLocaleString("en-US")} databases`);
  const [conclusion = ""] = found(/`(CHECK PASSED[^`]+)`/g);
  expect(renderConclusion([])[0]).toContain(conclusion);
});

test("links only to files that exist", () => {
  const links = found(/\]\(([^)]+)\)/g);
  expect(links.length).toBeGreaterThan(10);
  expect(links.filter((link) => !existsSync(join(root, link)))).toEqual([]);
});

test("shows every picture, none of them large", () => {
  const shown = found(/<img [^>]*src="docs\/pictures\/([^"]+)"/g);
  expect(shown.toSorted()).toEqual(readdirSync(join(root, "docs/pictures")).toSorted());
  for (const name of shown)
    expect(statSync(join(root, "docs/pictures", name)).size, name).toBeLessThan(MAX_PICTURE_BYTES);
});

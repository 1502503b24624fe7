/** `npm run pictures` makes the pictures that the README shows. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { isBrowserSkipped } from "../support/browser/chromium.ts";

const root = join(import.meta.dirname, "../..");
const folder = mkdtempSync(join(tmpdir(), "leasehold-pictures-test-"));

afterAll(() => rmSync(folder, { recursive: true }));

/** The width and the height of each PNG. */
const sizesIn = (of: string): [string, number, number][] =>
  readdirSync(of).map((name) => {
    const png = readFileSync(join(of, name));
    return [name, png.readUInt32BE(16), png.readUInt32BE(20)];
  });

test.skipIf(isBrowserSkipped())("the pictures are made again under the same names, in the same sizes", () => {
  execFileSync(process.execPath, ["scripts/pictures.ts", "--to", folder], { cwd: root });
  expect(sizesIn(folder)).toEqual(sizesIn(join(root, "docs/pictures")));
});

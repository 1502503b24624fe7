import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { expect, onTestFinished, test } from "vitest";

const root = join(import.meta.dirname, "../../..");
const { isCurrent, makeBundle } = (await import(join(root, "src/hosts/workerd/fresh-bundle.mjs"))) as {
  isCurrent: (folder: string) => boolean;
  makeBundle: (folder: string, options: object) => Promise<void>;
};

test("a bundle is made again for other sources, and left alone while it is current", async () => {
  const scratch = mkdtempSync(join(tmpdir(), "leasehold-bundle-"));
  onTestFinished(() => rmSync(scratch, { recursive: true, force: true }));
  const [source, folder] = [join(scratch, "source.ts"), join(scratch, "bundle")];
  const write = (text: string): void => writeFileSync(source, `console.log(${JSON.stringify(text)});`);
  const make = (): Promise<void> => makeBundle(relative(root, folder), { entryPoints: { main: source } });
  const made = (): number => statSync(folder).ino;
  const text = (): string => readFileSync(join(folder, "main.mjs"), "utf8");

  write("first");
  mkdirSync(folder);
  await make();
  expect(text()).toContain("first");
  const first = made();
  // A process may run from it.
  await Promise.all([make(), make()]);
  expect(made()).toBe(first);
  write("a second text");
  expect(isCurrent(relative(root, folder))).toBe(false);
  await make();
  expect(text()).toContain("a second text");
  utimesSync(source, 1, 1);
  expect(isCurrent(relative(root, folder))).toBe(false);
});

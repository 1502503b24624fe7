/** What the docs say about runtimes and test runners is what `npm run test:runtimes` checks. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { peers } from "../../scripts/sdk/entries.ts";
import manifest from "../../package.json" with { type: "json" };
import { buildProgram } from "../../src/cli/framework/program.ts";
import { commandTree } from "../../src/cli/completion/command-tree.ts";
import { steps } from "../rigs/runtimes/commands.ts";
import { runners } from "../rigs/runtimes/runners.ts";
import { deno, runtimes, titleOf, workerd } from "../rigs/runtimes/runtimes.ts";

const page = (path: string): string => readFileSync(join(import.meta.dirname, "../../docs", path), "utf8");

test("the reference lists the checked runtimes", () => {
  const [, section = ""] = /^## Runtimes\n(.*?)^## /ms.exec(page("reference/databases.md")) ?? [];
  const listed = [...section.matchAll(/^- (\w+ [\d.]+)/gm)].map(([, name]) => name);
  expect(listed).toEqual(runtimes.map(titleOf));
});

test("the page of the router lists the checked runtimes", () => {
  const [, section = ""] = /^## Runtimes\n(.*)/ms.exec(page("reference/router.md")) ?? [];
  const listed = [...section.matchAll(/^- (\w+)(.*)$/gm)].flatMap(([, name, versions = ""]) =>
    [...versions.matchAll(/[\d.]*\d/g)].map(([version]) => `${name} ${version}`),
  );
  expect(listed).toEqual([...runtimes, deno].map(titleOf));
  expect(section).toContain(`\n- ${workerd.name}, `);
});

test("every command of the command line is run, and no other", () => {
  const none = (): undefined => undefined;
  const tree = commandTree(buildProgram(() => async () => undefined, { out: none, err: none }));
  const leaves = tree.filter(({ path, subcommands }) => path !== "" && subcommands.length === 0);
  expect(steps.map(({ command }) => command).toSorted()).toEqual(leaves.map(({ path }) => path).toSorted());
});

test("the oldest Node is the one that the package demands", () => {
  const [oldest] = runtimes;
  expect(manifest.engines.node).toBe(`>=${oldest?.version.replace(/\.0$/, "")}`);
});

test("the oldest Node with the test coordinator is the one that the docs name", () => {
  const oldest = runtimes.find(({ hasTesting }) => hasTesting)?.version.replace(/\.\d+$/, "");
  for (const path of ["reference/databases.md", "reference/sdk.md", "guides/testing-your-cell.md"])
    expect(page(path), path).toMatch(new RegExp(`Node ${oldest} (or newer|and later)`));
});

test("the checked versions of Kysely are within those of the package", () => {
  const checked = new Set(runtimes.map(({ kysely }) => kysely.split(".").slice(0, 2).join(".")));
  expect(peers.kysely).toBe([...checked].map((version) => `^${version}.0`).join(" || "));
});

test("the guide shows the lines of each test runner", () => {
  const guide = page("guides/write-an-adapter.md");
  for (const { lines } of runners) expect(guide).toContain(`\`\`\`js\n${lines}\`\`\``);
});

/** What holds for every command, read from the tree of commands, so that a new one can't be forgotten. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { describe, expect, test } from "vitest";
import { buildProgram } from "../../src/cli/framework/program.ts";
import { startCommandLine } from "./command-line.ts";

const nowhere = (): void => undefined;
const program = buildProgram(() => async () => undefined, { out: nowhere, err: nowhere });

const leavesOf = (command: Command, path: readonly string[] = []): { path: string[]; command: Command }[] =>
  command.commands.length === 0
    ? [{ path: [...path], command }]
    : command.commands.flatMap((each) => leavesOf(each, [...path, each.name()]));

const leaves = leavesOf(program).map(({ path, command }) => ({ name: path.join(" "), path, command }));
const flagsOf = ({ options }: Command): string[] => options.flatMap(({ long }) => long ?? []);

/** What each argument and mandatory flag of the commands may be. */
const VALUES: Readonly<Record<string, string>> = {
  id: "7",
  uuid: "0198c5a0-5f6e-7000-8000-000000000001",
  method: "POST",
  path: "/v1/admin/cells",
  transfer: "7-0198c5a0-5f6e-7000-8000-000000000001",
  "--cell": "7",
  "--from": "3",
  "--to": "7",
};

function argumentsOf({ registeredArguments, options }: Command): string[] {
  const given = registeredArguments
    .filter(({ required }) => required)
    .map((argument) => VALUES[argument.name()] ?? "x");
  const flags = options
    .filter(({ mandatory, long }) => mandatory && long !== "--reason")
    .flatMap(({ long, argChoices }) => [long ?? "", VALUES[long ?? ""] ?? argChoices?.[0] ?? "x"]);
  return [...given, ...flags];
}

test("there are commands", () => {
  expect(leaves.length).toBeGreaterThan(25);
});

describe.each(leaves)("leasehold $name", ({ name, path, command }) => {
  test("shows its help with an example, without network and settings", async () => {
    const line = await startCommandLine({ cells: [] });
    const env = { LEASEHOLD_URL: undefined, LEASEHOLD_KEY: undefined };
    const { code, out, err } = await line.run([...path, "--help"], { env });
    expect({ code, err, sent: line.sent }).toEqual({ code: 0, err: "", sent: [] });
    expect(out).toContain(`Usage: leasehold ${name}`);
    expect(out).toMatch(new RegExp(`Examples:\n[^]*    leasehold ${name}`));
  });

  test("refuses an unknown flag, with a suggestion, and sends nothing", async () => {
    const line = await startCommandLine({ cells: [] });
    const { code, out, err } = await line.run([...path, "--jsn"]);
    expect({ code, out, sent: line.sent }).toEqual({ code: 2, out: "", sent: [] });
    expect(err).toContain("error: unknown option '--jsn'\n(Did you mean --json?)");
  });

  const needed = [
    ...command.registeredArguments.flatMap((each) => (each.required ? [each.name().toUpperCase()] : [])),
    ...command.options.flatMap(({ mandatory, long }) => (mandatory ? [long ?? ""] : [])),
  ];

  if (needed.length === 0) return;
  test("names all that is missing at once, and marks it in its help", async () => {
    const line = await startCommandLine({ cells: [] });
    const { code, out, err } = await line.run(path);
    expect({ code, out, sent: line.sent }).toEqual({ code: 2, out: "", sent: [] });
    const all = needed.includes("--reason") ? [...needed, "--yes"] : needed;
    expect(err).toBe(
      `leasehold: ${new Intl.ListFormat("en-GB").format(all)} ${all.length === 1 ? "is" : "are"} required\n` +
        `Next: leasehold ${name} --help\n`,
    );
    const help = (await line.run([...path, "--help"])).out;
    expect(help.match(/\(required\)/g) ?? []).toHaveLength(command.options.filter((o) => o.mandatory).length);
  });
});

const bounded = leaves.flatMap(({ name, command }) =>
  command.options
    .filter(({ parseArg, flags }) => parseArg !== undefined && /<(time|count|number|port)>/.test(flags))
    .map((option) => ({ name, flags: option.flags, option })),
);

test("some flags take numbers and times", () => {
  expect(bounded.map(({ name, flags }) => `${name} ${flags}`)).toEqual(
    expect.arrayContaining(["leases ls --older-than <time>", "bench --for <time>", "dev --port <port>"]),
  );
});

test.each(bounded)("leasehold $name $flags names its bounds", ({ option }) => {
  for (const text of ["-1", "999999999d", "x"])
    expect(() => option.parseArg?.(text, undefined)).toThrow(/^It must be an? .* from \S+ to [^ ,]+/);
});

/** Flags without which a command complains about something else first. */
const EXTRA: Readonly<Record<string, readonly string[]>> = {
  "cells set": ["--name", "x"],
  "webhooks set": ["--disable"],
};

const destructive = leaves.filter(({ command }) => {
  const flags = flagsOf(command);
  return flags.includes("--reason") && flags.includes("--yes");
});

test("some commands take something away", () => {
  expect(destructive.map(({ name }) => name)).toEqual(
    expect.arrayContaining([
      "api",
      "cells freeze",
      "cells set",
      "keys revoke",
      "leases commit",
      "types apply",
    ]),
  );
});

describe.each(destructive)("leasehold $name", ({ name, path, command }) => {
  const args = [...path, ...argumentsOf(command), ...(EXTRA[name] ?? [])];

  test.each([
    ["without --reason", ["--yes"], "--reason is required"],
    ["with an empty one", ["--yes", "--reason", " "], "--reason is required"],
    ["with control characters in it", ["--yes", "--reason", "a\nb"], "one line without control characters"],
  ])("sends nothing %s", async (_, flags, sentence) => {
    const line = await startCommandLine({ cells: [] });
    const { code, out, err } = await line.run([...args, ...flags]);
    expect({ code, out, sent: line.sent }).toEqual({ code: 2, out: "", sent: [] });
    expect(err).toContain(sentence);
  });

  test("has a dry run", () => {
    expect(flagsOf(command)).toContain("--dry-run");
  });
});

/** Each mention in code of the page. */
const page = readFileSync(join(import.meta.dirname, "../../docs/reference/command-line.md"), "utf8");

/** Flags of several commands, which the page describes once. */
const EVERYWHERE = new Set(["--reason", "--yes", "--dry-run", "--limit"]);

test.each(leaves)("the reference page has leasehold $name with its flags", ({ name, command }) => {
  const [group = ""] = name.split(" ");
  const [, section = ""] = new RegExp(`^## ${group}\n([^]*?)(?=^## |(?![^]))`, "m").exec(page) ?? [];
  const text = ["login", "context"].includes(group) ? page : section;
  const isNamed = name === group ? text !== "" : text.includes(`leasehold ${name}`);
  expect(isNamed, `command-line.md lacks leasehold ${name}`).toBe(true);
  const missing = flagsOf(command).filter((flag) => !EVERYWHERE.has(flag) && !text.includes(flag));
  expect(missing).toEqual([]);
});

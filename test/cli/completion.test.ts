/** The completion scripts: bash for real, the others by their shell's check of the syntax. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { isInPath } from "../support/setup/programs.ts";
import { startCommandLine } from "./command-line.ts";

const folder = mkdtempSync(join(tmpdir(), "leasehold-completion-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Writes a script into a file, because some shells cannot read one from a socket. */
async function fileOf(shell: string): Promise<string> {
  const file = join(folder, shell);
  writeFileSync(file, await scriptOf(shell));
  return file;
}

async function scriptOf(shell: string): Promise<string> {
  const line = await startCommandLine();
  const { out, err, code } = await line.run(["completion", shell], { env: { LEASEHOLD_URL: undefined } });
  expect({ err, code }).toEqual({ err: "", code: 0 });
  return out;
}

/** What bash offers for a line with the cursor behind its last word. */
async function completeInBash(...words: string[]): Promise<string[]> {
  const list = ["leasehold", ...words].map((word) => `'${word}'`).join(" ");
  const { stdout, stderr, status } = spawnSync(
    "bash",
    [
      "--norc",
      "-c",
      `source "$0"; COMP_WORDS=(${list}); COMP_CWORD=${words.length}; _leasehold
      printf '%s\\n' "\${COMPREPLY[@]}"`,
      await fileOf("bash"),
    ],
    { encoding: "utf8" },
  );
  expect({ stderr, status }).toEqual({ stderr: "", status: 0 });
  return stdout.split("\n").filter((word) => word !== "");
}

describe("bash", () => {
  test.each([
    [["lo"], ["lookup", "login"]],
    [
      ["context", ""],
      ["ls", "use", "rm", "--url", "--context", "--json", "--jsonl", "--version", "--help"],
    ],
    [["lookup", "ada", "--tr"], ["--trace"]],
    [["--json", "context", "u"], ["use"]],
    [["lookup", "--type", ""], []],
    [["nothing", "lookup", "--ty"], ["--type"]],
  ])("completes %j", async (words, offered) => {
    expect((await completeInBash(...words)).toSorted()).toEqual(offered.toSorted());
  });
});

describe.each([
  ["zsh", ["-n"]],
  ["fish", ["--no-execute"]],
])("%s", (shell, check) => {
  test.runIf(isInPath(shell))("accepts the syntax of its script", async () => {
    const { status, stderr } = spawnSync(shell, [...check, await fileOf(shell)], { encoding: "utf8" });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  });

  test("offers every command with its flags", async () => {
    const script = await scriptOf(shell);
    for (const word of ["lookup", "context", "use", "trace", "Show which cell owns a name"])
      expect(script).toContain(word);
  });
});

test.runIf(isInPath("fish"))("fish completes", async () => {
  const lines = ["leasehold context u", "leasehold lookup --tr"];
  const script = [`source ${await fileOf("fish")}`, ...lines.map((each) => `complete -C '${each}'`)].join(
    ";",
  );
  const { stdout } = spawnSync("fish", ["--no-config", "-c", script], {
    encoding: "utf8",
  });
  expect(
    stdout
      .split("\n")
      .filter(Boolean)
      .map((each) => each.split("\t")[0]),
  ).toEqual(["use", "--trace"]);
});

test("the script for PowerShell balances its quotes and braces", async () => {
  const script = await scriptOf("powershell");
  const bare = script.replaceAll(/'(?:[^']|'')*'/g, "");
  expect(bare).not.toContain("'");
  for (const [open, close] of ["{}", "()", "[]"].map((pair) => [...pair]))
    expect(bare.split(open ?? "").length).toBe(bare.split(close ?? "").length);
});

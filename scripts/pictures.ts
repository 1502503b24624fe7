/** `npm run pictures`: makes the README's pictures again, with `npm run example` and Chromium. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import type { Page } from "playwright-core";
import { startChromium } from "../test/support/browser/chromium.ts";
import type { DevKeys } from "../src/hosts/workerd/dev-keys.ts";

const root = join(import.meta.dirname, "..");
/** How long a page may take to show what its picture is about. */
const TIMEOUT_MS = 30_000;
/** Both pictures have this size, because the README shows them side by side. */
const SIZE = { width: 1_100, height: 1_010 };

const press = async (page: Page, name: string): Promise<void> => {
  await Promise.all([page.waitForEvent("load"), page.getByRole("button", { name, exact: true }).click()]);
};

/** Fails if the page doesn't show the text, so that no picture shows something else. */
async function photograph(page: Page, text: string, path: string): Promise<void> {
  await page.getByText(text, { exact: true }).first().waitFor();
  await page.screenshot({ path });
}

async function signUp(page: Page, cell: string, handle: string, email: string): Promise<void> {
  await page.goto(cell);
  await page.fill("#handle", handle);
  await page.fill("#email", email);
  await press(page, "Sign up");
}

async function takePictures(page: Page, output: string, folder: string, to: string): Promise<void> {
  const addressOf = (part: string): string => new RegExp(`^ {2}${part} +(\\S+)`, "m").exec(output)?.[1] ?? "";
  const [router, coordinator] = [addressOf("router"), addressOf("coordinator")];
  await signUp(page, `${router}/-/cells/1`, "ada", "ada@example.com");
  await signUp(page, `${router}/-/cells/2`, "ADA", "lovelace@example.com");
  await photograph(page, "Handle has already been taken.", join(to, "example.png"));
  const { operator } = JSON.parse(readFileSync(join(folder, "coordinator/dev-keys.json"), "utf8")) as DevKeys;
  await page.goto(`${coordinator}/console`);
  await page.fill("#key", operator);
  await press(page, "Sign in");
  await page.goto(`${coordinator}/console/name?type=HANDLES&value=ada`);
  await photograph(page, "PEOPLE 1", join(to, "console.png"));
}

/** Returns what the example prints until it is ready. */
async function outputOf({ stdout }: ChildProcess): Promise<string> {
  let output = "";
  if (stdout !== null)
    for await (const line of createInterface({ input: stdout })) {
      output += `${line}\n`;
      if (line.startsWith("Ctrl-C")) return output;
    }
  throw new Error("the example ended before it was ready");
}

async function main(to: string): Promise<void> {
  const browser = await startChromium();
  mkdirSync(to, { recursive: true });
  const folder = mkdtempSync(join(tmpdir(), "leasehold-pictures-"));
  const args = ["examples/cell/main.ts", "--folder", folder];
  const example = spawn(process.execPath, args, { cwd: root, stdio: ["ignore", "pipe", "inherit"] });
  const exit = once(example, "exit");
  try {
    const page = await browser.newPage({ viewport: SIZE, colorScheme: "light", reducedMotion: "reduce" });
    page.setDefaultTimeout(TIMEOUT_MS);
    await takePictures(page, await outputOf(example), folder, to);
  } finally {
    await browser.close();
    example.kill("SIGINT");
    await exit;
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

const { values } = parseArgs({ options: { to: { type: "string", default: join(root, "docs/pictures") } } });
await main(resolve(values.to));

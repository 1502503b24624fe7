import { existsSync } from "node:fs";
import { chromium, type Browser } from "playwright-core";
import { areRequired } from "../databases/available.ts";

const places = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** One that the machine has: none is downloaded. */
export function findChromium(): string | undefined {
  const given = process.env["CHROMIUM_PATH"];
  return [...(given === undefined ? [] : [given]), ...places].find((path) => existsSync(path));
}

/** For `describe.skipIf`. Where everything is required such a test runs, and fails with what is missing. */
export const isBrowserSkipped = (): boolean => !areRequired && findChromium() === undefined;

export async function startChromium(): Promise<Browser> {
  const executablePath = findChromium();
  if (executablePath === undefined)
    throw new Error("there is no Chromium: test/support/browser/install.sh installs it on Debian");
  // Its sandbox is refused to root.
  const sandbox = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  return chromium.launch({ executablePath, args: ["--disable-gpu", ...sandbox] });
}

import { chromium, type Browser } from "playwright-core";
import { findChromium } from "./find-chromium.ts";

/** Whether Chromium is installed, for `describe.skipIf`. */
export const isBrowserSkipped = (): boolean => findChromium() === undefined;

export async function startChromium(): Promise<Browser> {
  const executablePath = findChromium();
  if (executablePath === undefined)
    throw new Error("Chromium is not installed; install it with npm run setup");
  // Chromium cannot use its sandbox as root.
  const sandbox = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  return chromium.launch({ executablePath, args: ["--disable-gpu", ...sandbox] });
}

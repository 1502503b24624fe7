import { chromium, type Browser } from "playwright-core";
import { findChromium } from "./find-chromium.ts";

/** For `describe.skipIf`. */
export const isBrowserSkipped = (): boolean => findChromium() === undefined;

export async function startChromium(): Promise<Browser> {
  const executablePath = findChromium();
  if (executablePath === undefined) throw new Error("Chromium is not installed: npm run setup installs it");
  // Its sandbox is refused to root.
  const sandbox = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  return chromium.launch({ executablePath, args: ["--disable-gpu", ...sandbox] });
}

import { existsSync } from "node:fs";

const places = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** Returns the path of an installed browser. The variable CHROMIUM_PATH names another one. */
export function findChromium(): string | undefined {
  const given = process.env["CHROMIUM_PATH"];
  return [...(given === undefined ? [] : [given]), ...places].find((path) => existsSync(path));
}

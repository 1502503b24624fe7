/** The package's documents: the change log, and the licences of the code in it. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

const AUDIENCE = "For cell authors";

/** The repository's change log, reduced to the sections for users of the package. */
export function changelogOf(text: string): string {
  const [title = "", ...sections] = text.split(/^(?=##+ )/m);
  return [
    title,
    ...sections.filter((section) => section.startsWith("## ") || section.startsWith(`### ${AUDIENCE}\n`)),
  ]
    .join("")
    .trimEnd()
    .concat("\n");
}

/** The licences of the npm packages whose code is in this one. */
export function licensesOf(root: string, names: readonly string[]): string {
  const parts = names.map((name) => `## ${name}\n\n${termsOf(join(root, "node_modules", name))}\n`);
  return ["# Third-party licenses\n\nCode of these packages is part of this one.\n", ...parts].join("\n");
}

function termsOf(folder: string): string {
  const file = ["LICENSE", "LICENSE.md", "LICENSE.txt"]
    .map((name) => join(folder, name))
    .find((path) => existsSync(path));
  if (file !== undefined) return readFileSync(file, "utf8").trim();
  const { license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { license: string };
  return `${license}, see https://spdx.org/licenses/${license}.html`;
}

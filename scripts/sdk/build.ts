import { existsSync } from "node:fs";
import { copyFile, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Entry } from "./entries.ts";
import { buildJavascript } from "./javascript.ts";
import { manifestOf, type RepositoryManifest } from "./manifest.ts";
import { buildProgram } from "./program.ts";
import { changelogOf, licensesOf } from "./documents.ts";
import { buildTypes } from "./types.ts";

/**
 * Builds the package in `folder`, and deletes everything else there. Throws when the package would contain
 * something that its entries must not have, with one line for each.
 */
export async function buildSdk(root: string, entries: readonly Entry[], folder: string): Promise<void> {
  const missing = entries.filter(({ source }) => !existsSync(join(root, source)));
  if (missing.length > 0)
    throw new Error(missing.map(({ name, source }) => `leasehold/${name}: there is no ${source}`).join("\n"));
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const bundled = [
    ...new Set([...(await buildJavascript(root, entries, folder)), ...(await buildProgram(root, folder))]),
  ].toSorted();
  buildTypes(root, entries, folder);
  const repository = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as RepositoryManifest;
  const changelog = await readFile(join(root, "CHANGELOG.md"), "utf8");
  const write = (name: string, text: string): Promise<void> => writeFile(join(folder, name), text);
  await write("package.json", `${JSON.stringify(manifestOf(repository, entries), null, 2)}\n`);
  await write("CHANGELOG.md", changelogOf(changelog));
  await write("THIRD_PARTY_LICENSES.md", licensesOf(root, bundled));
  await copyFile(join(import.meta.dirname, "README.md"), join(folder, "README.md"));
}

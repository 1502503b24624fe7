import { PGlite } from "@electric-sql/pglite";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "../../..");
const cache = join(root, "node_modules/.cache");
const { devDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  devDependencies: Record<string, string>;
};
/** The copy, made by the installed version. */
const file = join(cache, `pglite-${devDependencies["@electric-sql/pglite"]}.tar`);

/** An empty PGlite. It starts from a copy of a new database, because creating one takes a second. */
export async function startPglite(): Promise<PGlite> {
  if (!existsSync(file)) await makeCopy();
  return PGlite.create({ loadDataDir: new Blob([readFileSync(file)]) });
}

async function makeCopy(): Promise<void> {
  const database = await PGlite.create();
  const copy = await database.dumpDataDir("none");
  await database.close();
  mkdirSync(cache, { recursive: true });
  // Several processes may make the copy at the same time.
  const unfinished = `${file}.${process.pid}`;
  writeFileSync(unfinished, new Uint8Array(await copy.arrayBuffer()));
  renameSync(unfinished, file);
}

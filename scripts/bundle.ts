/**
 * Bundles Workers into modules. A part that is imported at its first use becomes a module of its own, so
 * isolates that never use it don't run it.
 */
import { build, type BuildOptions } from "esbuild";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";

const root = join(import.meta.dirname, "..");

/** The Worker that is deployed and that `npm start` runs. */
export const workerEntry = join(root, "src/coordinator/index.ts");

/** The name of the module that exports the handlers and the classes of the objects. */
const MAIN_MODULE = "index.js";

/** Modules that the runtime brings. */
const platform = ["cloudflare:*", "node:*"];

const options: BuildOptions & { write: false } = {
  absWorkingDir: root,
  outdir: "dist/worker",
  bundle: true,
  splitting: true,
  write: false,
  format: "esm",
  platform: "neutral",
  target: "es2024",
  mainFields: ["module", "main"],
  conditions: ["workerd", "worker", "browser"],
  external: platform,
  legalComments: "none",
  logLevel: "silent",
};

export interface WorkerModule {
  type: "ESModule";
  path: string;
  contents: string;
}

/**
 * Bundles a Worker into the modules that Miniflare runs. The main module is the first one. Imports of
 * `external` are left as they are.
 */
export async function bundle(entryPoint: string, external: string[] = []): Promise<WorkerModule[]> {
  const { outputFiles } = await build({
    ...options,
    entryPoints: { index: entryPoint },
    external: [...platform, ...external],
  });
  const modules = outputFiles.map(({ path, text }): WorkerModule => {
    return { type: "ESModule", path: basename(path), contents: text };
  });
  return modules.toSorted((a, b) => Number(b.path === MAIN_MODULE) - Number(a.path === MAIN_MODULE));
}

/** Writes the modules that are deployed, and their source maps, into a folder. Deletes what was in it. */
export async function buildWorker(folder: string): Promise<void> {
  const { outputFiles } = await build({ ...options, entryPoints: { index: workerEntry }, sourcemap: true });
  // wrangler uploads every module in the folder.
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const { path, contents } of outputFiles) writeFileSync(join(folder, basename(path)), contents);
}

import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseSync } from "oxc-parser";
import { buildWorker, type WorkerModule } from "../../scripts/bundle.ts";

/** The main module and those that it imports statically. */
export function startModules(modules: readonly WorkerModule[]): WorkerModule[] {
  const byPath = new Map(modules.map((module) => [`./${module.path}`, module]));
  const found = new Set<WorkerModule>();
  const add = (module: WorkerModule | undefined): void => {
    if (module === undefined || found.has(module)) return;
    found.add(module);
    const { staticImports, staticExports } = parseSync(module.path, module.contents).module;
    const reexports = staticExports.flatMap(({ entries }) => entries.map((entry) => entry.moduleRequest));
    for (const request of [...staticImports.map((one) => one.moduleRequest), ...reexports])
      if (request !== null) add(byPath.get(request.value));
  };
  add(modules[0]);
  return [...found];
}

/** Builds the Worker as it is deployed, into a new folder. Returns its modules, the main one first. */
export async function builtWorker(): Promise<{ folder: string; modules: WorkerModule[] }> {
  const folder = mkdtempSync(join(tmpdir(), "worker-bundle-"));
  await buildWorker(folder);
  const names = readdirSync(folder).filter((name) => name.endsWith(".js"));
  const modules = ["index.js", ...names.filter((name) => name !== "index.js")].map((path): WorkerModule => {
    return { type: "ESModule", path, contents: readFileSync(join(folder, path), "utf8") };
  });
  return { folder, modules };
}

/** An application outside of the repository, with the packed SDK, its peers and the test runners. */
import { build } from "esbuild";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import repository from "../../../package.json" with { type: "json" };
import type { Run } from "./run.ts";
import { runners } from "./runners.ts";
import type { Runtime } from "./runtimes.ts";

const npm = [
  "install",
  "--ignore-scripts",
  "--no-audit",
  "--no-fund",
  "--no-save",
  "--silent",
  "--fetch-timeout=60000",
];

/** Makes the folder, installs everything, and writes the programs that the runtimes run. */
export async function makeProject(folder: string, tarball: string, kysely: string, run: Run): Promise<void> {
  mkdirSync(folder);
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, type: "module" }));
  const {
    pg,
    mysql2,
    "drizzle-orm": drizzle,
  } = { ...repository.dependencies, ...repository.devDependencies };
  const packages = {
    pg,
    mysql2,
    "drizzle-orm": drizzle,
    kysely,
    ...Object.assign({}, ...runners.map((runner) => runner.packages)),
  } as Record<string, string>;
  const specs = Object.entries(packages).map(([name, version]) => `${name}@${version}`);
  await run("npm", [...npm, tarball, ...specs], { cwd: folder });
  // The programs are JavaScript, because Node 20 does not run TypeScript.
  await build({
    entryPoints: ["claims", "conformance", "coordinator", "router", "router-worker"].map((name) =>
      join(import.meta.dirname, "consumer", `${name}.ts`),
    ),
    outdir: folder,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    packages: "external",
    platform: "node",
    format: "esm",
    target: "node20",
    logLevel: "warning",
  });
}

/** Installs the runtime, and returns the path of its program. */
export async function installRuntime(scratch: string, runtime: Runtime, run: Run): Promise<string> {
  const folder = mkdtempSync(join(scratch, "runtime-"));
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true }));
  await run("npm", [...npm, `${runtime.package}@${runtime.version}`], { cwd: folder });
  return join(folder, "node_modules", runtime.package, runtime.program);
}

import { build } from "esbuild";
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { NEXT_MIGRATION, nextSources } from "./pieces.ts";

export const root = join(import.meta.dirname, "../../..");

/**
 * Writes the program as the next version would be into a folder: today's sources with the pieces of pieces.ts
 * replaced. Its servers are started there as they are started here.
 *
 * @param bug one of `bugs` in pieces.ts, which it has as well
 */
export function makeNextVersion(folder: string, bug?: string): void {
  mkdirSync(folder, { recursive: true });
  for (const name of ["src", "scripts", "migrations", "package.json", "openapi.json"])
    cpSync(join(root, name), join(folder, name), { recursive: true });
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  for (const [file, source] of nextSources(bug)) writeFileSync(join(folder, file), source);
  writeFileSync(join(folder, "migrations", NEXT_MIGRATION.name), NEXT_MIGRATION.sql);
}

/** Writes the bundle of worker.ts, in which `other-version.ts` is the next version. Returns its path. */
export async function bundleMixedWorker(nextFolder: string, folder: string): Promise<string> {
  await build({
    entryPoints: { index: join(import.meta.dirname, "worker.ts") },
    outdir: folder,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "neutral",
    target: "es2024",
    mainFields: ["module", "main"],
    conditions: ["workerd", "worker", "browser"],
    external: ["cloudflare:*", "node:*"],
    logLevel: "silent",
    plugins: [
      {
        name: "next-version",
        setup: (bundle) =>
          bundle.onResolve({ filter: /^\.\/other-version\.ts$/ }, () => ({
            path: join(nextFolder, "src/coordinator/index.ts"),
          })),
      },
    ],
  });
  return join(folder, "index.mjs");
}

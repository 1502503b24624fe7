import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Entry } from "./entries.ts";
import { runTsc } from "./run.ts";

interface CompilerSetup {
  name: string;
  options: Record<string, string | readonly string[]>;
  fits: (entry: Entry) => boolean;
}

/**
 * The compiler setups of users: each module resolution, and one without Node's types (drizzle's types need
 * them).
 */
const compilerSetups: readonly CompilerSetup[] = [
  {
    name: "node16",
    options: { module: "node16", moduleResolution: "node16", lib: ["es2023"], types: ["node"] },
    fits: () => true,
  },
  {
    name: "bundler",
    options: { module: "esnext", moduleResolution: "bundler", lib: ["es2023"], types: ["node"] },
    fits: () => true,
  },
  {
    name: "browser",
    options: { module: "esnext", moduleResolution: "bundler", lib: ["es2023", "dom"], types: [] },
    fits: (entry) => entry.runsOn === "any" && entry.peers.length === 0,
  },
];

/**
 * Compiles the sample of the package's README, and an import of every entry, in each setup and with all
 * checks. Throws what the compiler reports.
 */
export function compileAgainstSdk(project: string, entries: readonly Entry[]): void {
  const readme = readFileSync(join(project, "node_modules/leasehold/README.md"), "utf8");
  const [, snippet = ""] = /^```ts\n(.+?)^```$/ms.exec(readme) ?? [];
  for (const { name, options, fits } of compilerSetups) {
    const folder = join(project, name);
    mkdirSync(folder);
    const some = entries.filter(fits);
    writeFileSync(
      join(folder, "entries.ts"),
      some.map((entry, at) => `export * as entry${at} from "leasehold/${entry.name}";\n`).join(""),
    );
    writeFileSync(join(folder, "readme.ts"), snippet);
    const strict = {
      strict: true,
      exactOptionalPropertyTypes: true,
      noEmit: true,
      skipLibCheck: false,
      target: "es2022",
    };
    writeFileSync(
      join(folder, "tsconfig.json"),
      JSON.stringify({ compilerOptions: { ...strict, ...options }, files: ["entries.ts", "readme.ts"] }),
    );
    compile(folder);
  }
}

/** Ignores errors in the types of peers. */
function compile(folder: string): void {
  try {
    runTsc(folder);
  } catch (error) {
    const lines = String(error)
      .split("\n")
      .filter((line) => /\berror TS\d+/.test(line));
    const ours = lines.filter(
      (line) => !line.includes("node_modules/") || line.includes("node_modules/leasehold/"),
    );
    if (ours.length > 0) throw new Error(ours.join("\n"), { cause: error });
    if (lines.length === 0) throw error;
  }
}

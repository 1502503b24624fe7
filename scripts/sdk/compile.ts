import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Entry } from "./entries.ts";
import { runTsc } from "./run.ts";

interface CompilerSetup {
  name: string;
  options: Record<string, string | readonly string[]>;
  fits: (entry: Entry) => boolean;
}

/** Where a user's compiler may stand: each way to find modules, and without Node's types. Those of drizzle need them. */
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
 * Compiles what the package's README shows, and an import of every entry, in each surrounding and with all checks. Throws what the compiler
 * says.
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

/** What a peer's own types have wrong is not ours. */
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

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, posix } from "node:path";
import { packageOf, typesOf, type Entry } from "./entries.ts";
import { runTsc } from "./run.ts";

/**
 * The language features that every supported runtime has. Node 20 is the oldest; the coordinator for tests
 * needs a newer one.
 */
const libOf: Record<Entry["runsOn"], readonly string[]> = {
  any: ["es2023", "es2024.string"],
  node: ["esnext"],
};

/** Writes the package's types into `folder`. Throws when they name packages that users do not have. */
export function buildTypes(root: string, entries: readonly Entry[], folder: string): void {
  const complaints: string[] = [];
  for (const runsOn of ["any", "node"] as const) {
    const some = entries.filter((entry) => entry.runsOn === runsOn);
    if (some.length === 0) continue;
    const emitted = mkdtempSync(join(tmpdir(), "leasehold-types-"));
    try {
      emit(root, some, libOf[runsOn], emitted);
      for (const entry of some) complaints.push(...keep(entry, emitted, folder));
    } finally {
      rmSync(emitted, { recursive: true, force: true });
    }
  }
  if (complaints.length > 0) throw new Error([...new Set(complaints)].join("\n"));
}

/** Emits the declarations of the entries. */
function emit(root: string, entries: readonly Entry[], lib: readonly string[], folder: string): void {
  const compilerOptions = {
    noEmit: false,
    declaration: true,
    emitDeclarationOnly: true,
    outDir: join(folder, "types"),
    rootDir: join(root, "src"),
    lib,
    types: ["node"],
    typeRoots: [join(root, "node_modules/@types")],
  };
  const project = {
    extends: join(import.meta.dirname, "../../tsconfig.base.json"),
    compilerOptions,
    files: entries.map(({ source }) => join(root, source)),
  };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(project));
  runTsc(folder);
}

/** Copies the declarations that an entry needs. Returns a line for each package that they must not name. */
function keep(entry: Entry, emitted: string, folder: string): string[] {
  const complaints: string[] = [];
  const reached = new Set([typesOf(entry)]);
  for (const file of reached) {
    const text = readFileSync(join(emitted, file), "utf8");
    for (const specifier of namedIn(text)) {
      if (specifier.startsWith(".")) reached.add(posix.join(dirname(file), declarationOf(specifier)));
      else if (!mayName(entry, specifier))
        complaints.push(`the types of leasehold/${entry.name} name ${specifier} (${file})`);
    }
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), resolvable(text));
  }
  return complaints;
}

const mayName = (entry: Entry, specifier: string): boolean =>
  entry.peers.some((peer) => peer === packageOf(specifier)) ||
  (entry.runsOn === "node" && specifier.startsWith("node:"));

/** Matches `from "…"`, `import "…"`, `import("…")` and references to other files, but no text `"from"`. */
const NAMES = /(?:(?<!")\bfrom\s*|\bimport\s*\(?\s*|<reference \w+=)"([^"]+)"/g;

const namedIn = (text: string): string[] =>
  [...text.replaceAll(/\/\*[\s\S]*?\*\//g, "").matchAll(NAMES)].map(([, specifier = ""]) => specifier);

const declarationOf = (specifier: string): string => specifier.replace(/\.ts$/, ".d.ts");

/**
 * Replaces `.ts` in specifiers: the compiler keeps it in declarations, but the package has no `.ts` files.
 */
const resolvable = (text: string): string =>
  text.replaceAll(NAMES, (whole, specifier: string) =>
    specifier.startsWith(".") ? whole.replace(/\.ts"$/, '.js"') : whole,
  );

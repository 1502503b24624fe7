/**
 * The simulator as one script that has all planted bugs. A thread loads it ten times faster than the modules,
 * and each run says which bug it plants. So all runs share what the engine has compiled, which is most of
 * what a run costs in a new thread.
 */
import { build as bundle, type Loader, type Plugin } from "esbuild";
import { readFile } from "node:fs/promises";
import { relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { bugs, plantedSources } from "./bugs.ts";

const projectFolder = fileURLToPath(new URL("../../../", import.meta.url));
const here = fileURLToPath(new URL("./", import.meta.url));

/** The sources of a file: as it is, and with each bug that changes it. */
type Variants = Map<string | undefined, string>;

/** Throws if a bug does not match its file. */
function changedFiles(): ReadonlyMap<string, Variants> {
  const base = plantedSources();
  const files = new Map<string, Variants>(
    [...base].map(([file, source]) => [file, new Map([[undefined, source]])]),
  );
  for (const [bug, { patches }] of Object.entries(bugs)) {
    const sources = plantedSources(bug);
    for (const { file } of patches) {
      const variants: Variants = files.get(file) ?? new Map();
      files.set(file, variants.set(bug, sources.get(file) ?? ""));
    }
  }
  return files;
}

/** A module with the exports of the file as it is, or of its variant with the planted bug. */
function switchOf(path: string, source: string, planted: readonly string[]): string {
  const names = [...source.matchAll(/^export (?:async |abstract )*(?:function\*?|class|const|let) (\w+)/gm)];
  const exported = names.map(([, name]) => name).join(", ");
  const url = (bug = ""): string => JSON.stringify(`${path}?planted=${bug}`);
  const variants = planted.map((bug, index) => `[${JSON.stringify(bug)}, planted${index}]`);
  return [
    `import { copyOf, plant, plantings } from ${JSON.stringify(`${here}planted.ts`)};`,
    `import * as original from ${url()};`,
    ...planted.map((bug, index) => `import * as planted${index} from ${url(bug)};`),
    `const variants = new Map([${variants.join(", ")}]);`,
    `export let { ${exported} } = copyOf(original);`,
    `const listed = { ${exported} };`,
    `plantings.push((bug) => { ({ ${exported} } = plant(listed, variants.get(bug) ?? original)); });`,
  ].join("\n");
}

/** The script of the simulator. */
export async function bundleSimulator(): Promise<string> {
  const changed = changedFiles();
  const loaded = new Set<string>();
  const plugin: Plugin = {
    name: "plant",
    setup: (build) => {
      build.onResolve({ filter: /\?planted=/ }, ({ path }) => {
        const [file, bug] = path.split("?") as [string, string];
        return { path: file, suffix: `?${bug}` };
      });
      build.onLoad({ filter: /\.ts$/ }, async ({ path, suffix }) => {
        const file = relative(projectFolder, path);
        loaded.add(file);
        const variants = changed.get(file);
        const original = variants?.get(undefined) ?? (await readFile(path, "utf8"));
        const planted = [...(variants?.keys() ?? [])].filter((bug) => bug !== undefined);
        if (planted.length > 0 && suffix === "")
          return { contents: switchOf(path, original, planted), loader: "js" as Loader };
        const source = variants?.get(suffix.slice("?planted=".length)) ?? original;
        // The bundle has no path, but some modules read files next to them.
        const url = JSON.stringify(pathToFileURL(path).href);
        return { contents: source.replaceAll("import.meta.url", () => url), loader: "ts" as Loader };
      });
    },
  };
  const { outputFiles } = await bundle({
    stdin: { contents: 'export * from "./run.ts"; export * from "./shrink.ts";', resolveDir: here },
    bundle: true,
    write: false,
    format: "cjs",
    platform: "node",
    target: "node24",
    // Planted bugs may look odd to the bundler.
    logLevel: "error",
    plugins: [plugin],
  });
  const unused = [...changed.keys()].filter((file) => !loaded.has(file));
  if (unused.length > 0) throw new Error(`the simulator does not import ${unused.join(", ")}`);
  const [simulator] = outputFiles;
  if (simulator === undefined) throw new Error("esbuild wrote no simulator");
  return simulator.text;
}

/**
 * The simulator as one script, optionally with a planted bug. A thread loads it ten times faster than the
 * modules, and each planted bug needs a thread of its own.
 */
import { build as bundle, type Plugin } from "esbuild";
import { readFile } from "node:fs/promises";
import { relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { plantedSources } from "./bugs.ts";

const projectFolder = fileURLToPath(new URL("../../../", import.meta.url));

/** Throws if the bug is unknown or does not match its file. */
export async function simulatorWith(bug: string | undefined): Promise<string> {
  const planted = plantedSources(bug);
  const loaded = new Set<string>();
  const plugin: Plugin = {
    name: "plant",
    setup: (build) =>
      build.onLoad({ filter: /\.ts$/ }, async ({ path }) => {
        const file = relative(projectFolder, path);
        loaded.add(file);
        const source = planted.get(file) ?? (await readFile(path, "utf8"));
        // The bundle has no path, but some modules read files next to them.
        const url = JSON.stringify(pathToFileURL(path).href);
        return { contents: source.replaceAll("import.meta.url", () => url), loader: "ts" };
      }),
  };
  const { outputFiles } = await bundle({
    entryPoints: [fileURLToPath(new URL("./run.ts", import.meta.url))],
    bundle: true,
    write: false,
    format: "esm",
    platform: "node",
    target: "node24",
    // Planted bugs may look odd to the bundler.
    logLevel: "error",
    plugins: [plugin],
  });
  const unused = [...planted.keys()].filter((file) => !loaded.has(file));
  if (unused.length > 0) throw new Error(`the simulator does not import ${unused.join(", ")}`);
  const [simulator] = outputFiles;
  if (simulator === undefined) throw new Error("esbuild wrote no simulator");
  return simulator.text;
}

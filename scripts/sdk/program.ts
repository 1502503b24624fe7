import { build } from "esbuild";
import { join } from "node:path";
import { cliBundle } from "../cli-bundle.mjs";
import { packageOf, WORKER } from "./entries.ts";

/** The path of the program `leasehold` in the package. */
export const PROGRAM = "js/cli.js";

/** The npm packages whose code is in the program. It needs no others. */
const BUNDLES: ReadonlySet<string> = new Set([...WORKER, "@hono/node-server", "commander", "recheck"]);

/**
 * Writes the program into `folder`, and returns the packages in it. It is a build of its own, because it
 * contains CommonJS, which the entries must not.
 */
export async function buildProgram(root: string, folder: string): Promise<readonly string[]> {
  const { metafile } = await build({
    ...cliBundle,
    absWorkingDir: root,
    outdir: join(folder, "js"),
    metafile: true,
    logLevel: "silent",
  });
  const outputs = Object.values(metafile?.outputs ?? {});
  const imported = outputs
    .flatMap(({ imports }) => imports)
    .filter(({ path, external }) => external === true && !path.startsWith("node:"));
  const bundled = new Set(
    outputs
      .flatMap(({ inputs }) => Object.keys(inputs))
      .flatMap((input) => /node_modules\/(.+)$/.exec(input)?.slice(1) ?? [])
      .map(packageOf),
  );
  const complaints = [
    ...imported.map(({ path }) => `leasehold (the program) imports ${path}`),
    ...[...bundled]
      .filter((name) => !BUNDLES.has(name))
      .map((name) => `leasehold (the program) has ${name} in it`),
  ];
  if (complaints.length > 0) throw new Error(complaints.join("\n"));
  return [...bundled];
}

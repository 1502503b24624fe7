import { build } from "esbuild";
import { gzipSync } from "node:zlib";

export interface Size {
  minifiedBytes: number;
  gzippedBytes: number;
}

/** Measures what all of `leasehold/client` adds to a web page. `project` has the package installed. */
export async function clientSize(project: string): Promise<Size> {
  const { outputFiles } = await build({
    stdin: { contents: 'export * from "leasehold/client";', resolveDir: project },
    bundle: true,
    minify: true,
    write: false,
    format: "esm",
    target: "es2022",
    logLevel: "silent",
  });
  const code = Buffer.concat(outputFiles.map(({ contents }) => contents));
  return { minifiedBytes: code.length, gzippedBytes: gzipSync(code, { level: 9 }).length };
}

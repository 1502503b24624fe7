import { build } from "esbuild";
import { isBuiltin } from "node:module";
import { join } from "node:path";
import { cliBundle } from "../cli-bundle.mjs";
import { packageOf, WORKER } from "./entries.ts";

/** The path of the program `leasehold` in the package. */
export const PROGRAM = "js/cli.js";

/** `@grpc/grpc-js`, with what it needs. */
const GRPC: readonly string[] = [
  "@grpc/grpc-js",
  "@grpc/proto-loader",
  "@js-sdsl/ordered-map",
  "@protobufjs/aspromise",
  "@protobufjs/base64",
  "@protobufjs/codegen",
  "@protobufjs/eventemitter",
  "@protobufjs/fetch",
  "@protobufjs/float",
  "@protobufjs/inquire",
  "@protobufjs/path",
  "@protobufjs/pool",
  "@protobufjs/utf8",
  "lodash.camelcase",
  "long",
  "protobufjs",
];

/** The npm packages whose code is in the program. It needs no others. */
const BUNDLES: ReadonlySet<string> = new Set([...WORKER, ...GRPC, "commander", "recheck"]);

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
    .filter(({ path, external }) => external === true && !isBuiltin(path));
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

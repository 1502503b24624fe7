/**
 * How the program `leasehold` is bundled, in this repository and in the package. Node 20 runs the bundle, but
 * not the sources.
 */

/** @type {import("esbuild").BuildOptions} */
export const cliBundle = {
  // `leasehold dev` starts a thread, whose program must be in the folder of the shared chunks.
  entryPoints: {
    cli: "src/cli/main.ts",
    "cli/checkpoint-worker": "src/hosts/standalone/checkpoint-worker.ts",
  },
  chunkNames: "cli/[name]-[hash]",
  bundle: true,
  splitting: true,
  format: "esm",
  platform: "node",
  target: "node20.19",
  // The analysis of regular expressions has tables of text, which escapes would make larger.
  charset: "utf8",
  minifyWhitespace: true,
  mainFields: ["module", "main"],
  // commander is CommonJS, and requires modules of Node.
  banner: {
    js: `#!/usr/bin/env node
import { createRequire as requireOf } from "node:module";
const require = requireOf(import.meta.url);`,
  },
  // THIRD_PARTY_LICENSES.md has the licences.
  legalComments: "none",
};

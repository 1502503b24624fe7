import type { BuildOptions } from "esbuild";

export const cliBundle: BuildOptions;

/** Checks with tools that know common mistakes of packages. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { run } from "./run.ts";

/** Throws what publint reports about the packed package. */
export async function lintSdk(folder: string, tarball: string): Promise<void> {
  const packed = await readFile(tarball);
  const { messages } = await publint({ pack: { tarball: new Uint8Array(packed).buffer }, strict: true });
  const manifest = JSON.parse(await readFile(join(folder, "package.json"), "utf8")) as Record<
    string,
    unknown
  >;
  if (messages.length > 0)
    throw new Error(
      messages
        .map((message) => formatMessage(message, manifest, { color: false }) ?? message.code)
        .join("\n"),
    );
}

/** Throws what `attw` reports: every module resolution must find types, and the right ones. */
export function resolveSdk(root: string, tarball: string): void {
  run(
    join(root, "node_modules/.bin/attw"),
    [tarball, "--profile", "esm-only", "--format", "ascii", "--no-color", "--no-emoji"],
    root,
  );
}

/** Builds the npm package, and checks it as its users use it: packed and installed. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildSdk } from "./sdk/build.ts";
import { clientSize } from "./sdk/client-size.ts";
import { compileAgainstSdk } from "./sdk/compile.ts";
import { importSdk, installSdk, leaseWithSdk, linkPeers, packSdk, runProgram } from "./sdk/consumer.ts";
import { entries } from "./sdk/entries.ts";
import { lintSdk, resolveSdk } from "./sdk/lint.ts";

const root = join(import.meta.dirname, "..");

async function check(scratch: string): Promise<void> {
  const folder = join(scratch, "package");
  await buildSdk(root, entries, folder);
  const tarball = packSdk(folder, scratch);
  await lintSdk(folder, tarball);
  resolveSdk(root, tarball);
  const project = join(scratch, "consumer");
  installSdk(tarball, project);
  importSdk(
    project,
    entries.filter(({ peers }) => peers.length === 0),
  );
  console.log(`a lease with the packed client: ${leaseWithSdk(project)}`);
  console.log(`npx leasehold --version: ${runProgram(project, "--version")}`);
  linkPeers(root, project);
  for (const [name, exports] of Object.entries(importSdk(project, entries)))
    console.log(`${name} exports ${exports.length} values`);
  compileAgainstSdk(project, entries);
  const { minifiedBytes, gzippedBytes } = await clientSize(project);
  console.log(`leasehold/client: ${minifiedBytes} bytes minified, ${gzippedBytes} with gzip`);
}

const scratch = mkdtempSync(join(tmpdir(), "leasehold-sdk-"));
try {
  await check(scratch);
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

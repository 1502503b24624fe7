/** Bundles of programs that start faster than their sources, and that are made again if a source changed. */
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "../../..");

/** @param {string} file */
const stampOf = (file) => {
  const { mtimeMs, size } = statSync(join(root, file), { throwIfNoEntry: false }) ?? { mtimeMs: 0, size: 0 };
  return `${mtimeMs} ${size}`;
};

/** The files that a bundle was made of, with their times and sizes. */
const INPUTS = "inputs.json";

/** The bundles that this process has begun to make. */
let attempts = 0;

/** The files that say how bundles are made. */
const SETTINGS = [
  "src/hosts/workerd/fresh-bundle.mjs",
  "scripts/cli-bundle.mjs",
  "scripts/standalone-bundle.mjs",
];

/**
 * Returns whether the bundle in a folder is that of the sources as they are.
 *
 * @param {string} folder
 */
export function isCurrent(folder) {
  try {
    const inputs = Object.entries(JSON.parse(readFileSync(join(root, folder, INPUTS), "utf8")));
    return inputs.length > 0 && inputs.every(([file, stamp]) => stampOf(file) === stamp);
  } catch {
    return false;
  }
}

/**
 * Makes a bundle for Node in a folder. Two callers may do so at the same time: the first one may run from
 * its bundle before the second one has finished. So a bundle that is current is left alone.
 *
 * @param {string} folder
 * @param {import("esbuild").BuildOptions} options
 */
export async function makeBundle(folder, options) {
  const { build } = await import("esbuild");
  const target = join(root, folder);
  const fresh = `${target}.${process.pid}-${(attempts += 1)}`;
  const { metafile } = await build({
    absWorkingDir: root,
    outdir: fresh,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    format: "esm",
    platform: "node",
    legalComments: "none",
    logLevel: "silent",
    ...options,
    metafile: true,
  });
  try {
    const inputs = [...SETTINGS, ...Object.keys(metafile?.inputs ?? {})].map((file) => [file, stampOf(file)]);
    mkdirSync(fresh, { recursive: true });
    writeFileSync(join(fresh, INPUTS), JSON.stringify(Object.fromEntries(inputs)));
    if (isCurrent(folder)) return;
    rmSync(target, { recursive: true, force: true });
    renameSync(fresh, target);
  } catch (error) {
    // Another process may have been faster.
    if (!isCurrent(folder)) throw error;
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

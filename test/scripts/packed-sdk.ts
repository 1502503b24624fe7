import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildSdk } from "../../scripts/sdk/build.ts";
import { installSdk, packSdk } from "../../scripts/sdk/consumer.ts";
import { entries } from "../../scripts/sdk/entries.ts";

/** How long it may take to build the package on a busy machine. Two compilers run for it. */
export const INSTALL_MS = 600_000;

const root = join(import.meta.dirname, "../..");

/** The package, built, packed, and installed in an empty project. */
export class PackedSdk {
  readonly #scratch = mkdtempSync(join(tmpdir(), "leasehold-sdk-"));
  /** The built package. */
  readonly folder = join(this.#scratch, "sdk");
  /** The project that has installed it. */
  readonly project = join(this.#scratch, "consumer");
  tarball = "";

  static async install(): Promise<PackedSdk> {
    const packed = new PackedSdk();
    await buildSdk(root, entries, packed.folder);
    packed.tarball = packSdk(packed.folder, packed.#scratch);
    installSdk(packed.tarball, packed.project);
    return packed;
  }

  remove(): void {
    rmSync(this.#scratch, { recursive: true, force: true });
  }
}

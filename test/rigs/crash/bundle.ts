/**
 * Prints the modules that src/hosts/workerd/coordinator.ts passes to the runtime, for `npm start` or for
 * another entry.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { registerHooks } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { WorkerModule } from "../../../scripts/bundle.ts";

const runtime = `
  export class Log {}
  export const LogLevel = {};
  export class Miniflare {}
  export const convertV4MiniflareOptions = ({ modules }) => {
    throw Object.assign(new Error("no runtime here"), { modules });
  };
`;
registerHooks({
  resolve: (specifier, context, next) =>
    specifier === "miniflare"
      ? { url: `data:text/javascript,${encodeURIComponent(runtime)}`, shortCircuit: true }
      : next(specifier, context),
});

const { startCoordinator } = await import("../../../src/hosts/workerd/coordinator.ts");
const entryPoint = process.argv[2];
const stateFolder = mkdtempSync(join(tmpdir(), "crash-bundle-"));
try {
  await startCoordinator({ port: 0, stateFolder, ...(entryPoint === undefined ? {} : { entryPoint }) });
} catch (error) {
  const { modules } = error as { modules?: WorkerModule[] };
  if (modules === undefined) throw error;
  process.stdout.write(modules.map(({ contents }) => contents).join(""));
} finally {
  rmSync(stateFolder, { recursive: true, force: true });
}

/** Prints the Worker as `npm start` would run it, or the one of another entry: what scripts/coordinator.ts hands to the runtime. */
import { mkdtempSync, rmSync } from "node:fs";
import { registerHooks } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

const runtime = `
  export class Log {}
  export const LogLevel = {};
  export class Miniflare {}
  export const convertV4MiniflareOptions = ({ script }) => { throw Object.assign(new Error("no runtime here"), { script }); };
`;
registerHooks({
  resolve: (specifier, context, next) =>
    specifier === "miniflare"
      ? { url: `data:text/javascript,${encodeURIComponent(runtime)}`, shortCircuit: true }
      : next(specifier, context),
});

const { startCoordinator } = await import("../../../scripts/coordinator.ts");
const entryPoint = process.argv[2];
const stateFolder = mkdtempSync(join(tmpdir(), "crash-bundle-"));
try {
  await startCoordinator({ port: 0, stateFolder, ...(entryPoint === undefined ? {} : { entryPoint }) });
} catch (error) {
  const { script } = error as { script?: string };
  if (script === undefined) throw error;
  process.stdout.write(script);
} finally {
  rmSync(stateFolder, { recursive: true, force: true });
}

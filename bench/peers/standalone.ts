/** The peer `standalone`, as `npm run standalone` runs it. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { DevKeys } from "../../src/hosts/workerd/dev-keys.ts";
import { freePort } from "../../src/hosts/workerd/free-port.ts";
import { cellKeys, VARIABLES } from "./cell-keys.ts";
import { folderOf, serve } from "./serve.ts";

const stateFolder = folderOf(process.argv);
const port = await freePort();
const env = { ...process.env, ...VARIABLES, PORT: String(port), LEASEHOLD_STATE: stateFolder };
const script = join(import.meta.dirname, "../../scripts/standalone.mjs");
const server = spawn(process.execPath, [script], { env, stdio: ["ignore", "pipe", "pipe"] });
// Only what explains a failure, and not its log.
createInterface({ input: server.stderr }).on("line", (line) => {
  if (!line.startsWith("{")) process.stderr.write(`${line}\n`);
});
// It is ready when it prints its first line.
const isReady = await Promise.race([
  once(createInterface({ input: server.stdout }), "line").then(() => true),
  once(server, "exit").then(() => false),
]);
if (!isReady) throw new Error("the server ended during its start; its output above says why");

const url = `http://127.0.0.1:${port}`;
const keys = JSON.parse(readFileSync(join(stateFolder, "dev-keys.json"), "utf8")) as DevKeys;
serve({ url, keys: await cellKeys(url, keys.operator), router: keys.router }, async () => {
  const ended = once(server, "exit");
  server.kill("SIGTERM");
  await ended;
});

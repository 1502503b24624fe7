/** Serves the coordinator of `leasehold/testing` over HTTP, for runtimes that cannot run it themselves. */
import { startTestCoordinator } from "leasehold/testing";
import { serveFetch } from "./serve.ts";

const cells = process.argv.slice(2);
const coordinator = await startTestCoordinator({ cells });
const { url } = await serveFetch((path, init) => coordinator.fetch(new URL(path, coordinator.url), init));
// It ends with the process that started it.
process.stdin.resume().once("end", () => process.exit());

const keys = Object.fromEntries(cells.map((id) => [id, coordinator.keys.cell(id)]));
console.log(JSON.stringify({ url, keys }));

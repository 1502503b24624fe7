/** Serves the coordinator of `leasehold/testing` over HTTP, for runtimes that cannot run it themselves. */
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { startTestCoordinator } from "leasehold/testing";

const cells = process.argv.slice(2);
const coordinator = await startTestCoordinator({ cells });

async function bodyOf(request: IncomingMessage): Promise<string | undefined> {
  let text = "";
  for await (const chunk of request.setEncoding("utf8")) text += String(chunk);
  return text === "" ? undefined : text;
}

const server = createServer((request, response) => {
  const answer = async (): Promise<void> => {
    const { method = "GET", url = "/" } = request;
    const body = await bodyOf(request);
    const headers = new Headers(request.headers as Record<string, string>);
    const init = body === undefined ? { method, headers } : { method, headers, body };
    const answered = await coordinator.fetch(new URL(url, coordinator.url), init);
    response.writeHead(answered.status, Object.fromEntries(answered.headers));
    response.end(Buffer.from(await answered.arrayBuffer()));
  };
  answer().catch((error: unknown) => response.destroy(error as Error));
});
// It ends with the process that started it.
process.stdin.resume().once("end", () => process.exit());
server.listen(0, "127.0.0.1");
await once(server, "listening");

const { port } = server.address() as AddressInfo;
const keys = Object.fromEntries(cells.map((id) => [id, coordinator.keys.cell(id)]));
console.log(JSON.stringify({ url: `http://127.0.0.1:${port}`, keys }));

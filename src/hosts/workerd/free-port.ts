import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";

/**
 * Ports below those that the system assigns to outgoing connections. An outgoing connection could otherwise
 * take the port of a server that is about to start or restart. `fetch` refuses 10080 and some lower
 * ports ("bad port").
 */
const FIRST = 10_081;
const LAST = 32_000;

export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST, LAST);
    const server = createServer().listen(port, "127.0.0.1");
    try {
      await once(server, "listening");
    } catch {
      continue;
    }
    server.close();
    await once(server, "close");
    return port;
  }
}

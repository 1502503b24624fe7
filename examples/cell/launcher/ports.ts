import { once } from "node:events";
import { createServer } from "node:net";
import { HOST } from "../web/local.ts";

const TRIES = 200;

/** Returns free ports in ascending order, each only once. */
export class Ports {
  #next: number;

  constructor(first: number) {
    this.#next = first;
  }

  async free(): Promise<number> {
    for (let tries = 0; tries < TRIES; tries += 1) {
      const port = this.#next;
      this.#next += 1;
      if (await isFree(port)) return port;
    }
    throw new Error(`there is no free port from --port to ${this.#next - 1}; set --port to another port`);
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, HOST);
  try {
    await once(server, "listening");
  } catch {
    return false;
  }
  server.close();
  await once(server, "close");
  return true;
}

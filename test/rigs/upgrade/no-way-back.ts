import { freePort } from "../../../src/hosts/workerd/free-port.ts";
import { Server, type ServerOptions } from "../crash/server.ts";

/** Starts today's version on a state of the next one. Complains unless it ends at once and says why. */
export async function refusesToStart(options: Omit<ServerOptions, "port">): Promise<string[]> {
  const server = new Server({ ...options, port: await freePort() });
  const isReady = await server.ready();
  const code = await server.stop();
  if (!isReady && code === 1 && server.output.includes("its tables need a newer version of Leasehold"))
    return [];
  return [`today's version ${isReady ? "started" : "ended"} with ${code}: ${server.output}`];
}

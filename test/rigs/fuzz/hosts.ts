/** What is fuzzed: by default `npm start`, and with FUZZ_HOST=standalone the standalone server. */
import { startCoordinator, type Coordinator } from "../../../src/hosts/workerd/coordinator.ts";
import { Host } from "../../../src/hosts/node/host.ts";
import { startStandalone } from "../../../src/hosts/standalone/server.ts";

export type FuzzedHost = Pick<Coordinator, "url" | "keys" | "cron" | "stop">;

const given = process.env["FUZZ_HOST"] ?? "";
if (!["", "standalone"].includes(given)) throw new Error("FUZZ_HOST must be `standalone`, if it is set");

export const isStandalone = given === "standalone";

/**
 * A wait after each answer. Otherwise work that goes on after it, such as that of the projection, could be
 * taken for an effect of the next request.
 */
export const SETTLE_MS = isStandalone ? 25 : 0;

export async function startHost(
  stateFolder: string,
  variables: Readonly<Record<string, string>>,
  log: (line: string) => void,
): Promise<FuzzedHost> {
  const options = { port: 0, stateFolder, variables, log };
  if (!isStandalone) return startCoordinator(options);
  let host: Host | undefined;
  const standalone = await startStandalone({
    ...options,
    host: "127.0.0.1",
    onStorageFailure: (failure) => {
      throw failure;
    },
    makeHost: (all) => (host = new Host(all)),
  });
  return { ...standalone, cron: async () => void (await host?.cron()) };
}

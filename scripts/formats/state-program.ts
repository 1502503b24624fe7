/** `npm start` and `npm run standalone`, to make the states of a release, and to open them. */
import { startCoordinator } from "../../src/hosts/workerd/coordinator.ts";
import { Host } from "../../src/hosts/node/host.ts";
import { startStandalone } from "../../src/hosts/standalone/server.ts";

export const PROGRAMS = ["start", "standalone"] as const;
export type Program = (typeof PROGRAMS)[number];

/** Of whom the key is: `operator`, `router`, or a cell by its id. */
type Caller = "operator" | "router" | "1" | "2" | "3";

export interface Opened {
  call: (caller: Caller, method: string, path: string, body?: object) => Promise<Answer>;
  /** A call with another key. */
  callWith: (key: string, method: string, path: string, body?: object) => Promise<Answer>;
  cron: () => Promise<void>;
  stop: () => Promise<void>;
}

export interface Answer {
  status: number;
  // oxlint-disable-next-line typescript/no-explicit-any -- of any call, and of every release
  body: any;
}

/** What is kept for some time stays as long as it can, because states are opened years later. */
const VARIABLES = {
  LEASEHOLD_NAME_HISTORY_S: "315360000",
  LEASEHOLD_AUDIT_RETENTION_S: "315360000",
  LEASEHOLD_STALE_S: "1",
  // No request leaves this machine.
  LEASEHOLD_WEBHOOK_HOSTS: "any",
};

/** Opens a state folder, or makes it. */
export async function openProgram(program: Program, stateFolder: string): Promise<Opened> {
  const server = await starts[program](stateFolder);
  const { url, keys } = server;
  const callWith = async (key: string, method: string, path: string, body?: object): Promise<Answer> => {
    const answer = await fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: answer.status, body: await answer.json() };
  };
  return {
    call: (caller, ...request) =>
      callWith(
        caller === "operator" || caller === "router" ? keys[caller] : (keys.cells[caller] ?? ""),
        ...request,
      ),
    callWith,
    cron: async () => void (await server.cron()),
    stop: () => server.stop(),
  };
}

const starts = {
  start: (stateFolder: string) => startCoordinator({ port: 0, stateFolder, variables: VARIABLES }),
  standalone: async (stateFolder: string) => {
    let host: Host | undefined;
    const server = await startStandalone({
      host: "127.0.0.1",
      port: 0,
      stateFolder,
      variables: VARIABLES,
      log: () => {},
      onStorageFailure: (failure) => {
        throw failure;
      },
      makeHost: (options) => (host = new Host(options)),
    });
    return { ...server, cron: async () => host?.cron() };
  },
};

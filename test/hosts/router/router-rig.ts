/** `npm run router` as a process, in front of cells and of a coordinator whose answers a test decides. */
import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { afterAll, beforeAll, beforeEach, expect } from "vitest";
import { freePort } from "../../../src/hosts/workerd/free-port.ts";
import { RouterProcess } from "./router-process.ts";
import { ScriptedCoordinator } from "./scripted-coordinator.ts";
import { TestCell } from "./test-cell.ts";

export const MIB = 2 ** 20;
export const METRICS_KEY = "the-key-of-the-metrics-in-the-tests";

interface Received {
  status: number | undefined;
  headers: IncomingMessage["headers"];
  body: string;
}

/** Headers of a request that a page has sent. */
export const browser = { "sec-fetch-site": "same-origin", cookie: "session=1" };

/** Starts one router for all tests of a file, and stops it after them. */
export function useRouter() {
  const coordinator = new ScriptedCoordinator();
  const [one, two] = [new TestCell("1"), new TestCell("2")];
  let router: RouterProcess;

  beforeAll(async () => {
    const coordinatorUrl = await coordinator.start();
    for (const cell of [one, two]) coordinator.addresses.set(cell.id, (await cell.start()).address);
    coordinator.addresses.set("3", "http://cell-3.example.com/app");
    router = await new RouterProcess(await freePort(), ["--coordinator", coordinatorUrl], {
      LEASEHOLD_KEY: "key-of-a-router",
      ROUTER_METRICS_KEY: METRICS_KEY,
      // Without reports, a router keeps a wrong answer for as long as it may.
      ROUTER_REPORTS: "off",
      ROUTER_MAX_AGE_MS: "60000",
    }).ready();
  });

  afterAll(async () => {
    await router?.end("SIGKILL");
    await Promise.all([one, two, coordinator].map((part) => part.stop()));
  });

  beforeEach(() => {
    for (const { names, arrived, left } of [one, two]) {
      names.clear();
      arrived.length = 0;
      left.length = 0;
    }
  });

  let names = 0;

  /** Gives a new name to a cell, and lets the router remember that. */
  async function nameOf(cell: TestCell): Promise<string> {
    const name = `name-${(names += 1)}`;
    coordinator.move(name, cell.id);
    cell.names.add(name);
    expect((await fetch(`${router.url}/${name}`)).status).toBe(200);
    cell.arrived.length = 0;
    return name;
  }

  /** A name that the router believes to be at cell 1, although cell 2 has it now. */
  async function movedName(): Promise<string> {
    const name = await nameOf(one);
    one.names.delete(name);
    two.names.add(name);
    coordinator.move(name, "2");
    return name;
  }

  /** Sends `totalBytes` as a body, also after an early answer, as a simple client does. */
  async function upload(path: string, totalBytes: number, headers: object = {}): Promise<Received> {
    const client = httpRequest(`${router.url}${path}`, {
      method: "PUT",
      headers: { "content-length": totalBytes, ...headers },
    });
    const answered = once(client, "response") as Promise<[IncomingMessage]>;
    const chunk = Buffer.alloc(MIB / 4);
    for (let sent = 0; sent < totalBytes; sent += chunk.length)
      if (!client.write(chunk)) await once(client, "drain");
    client.end();
    const [answer] = await answered;
    const body = Buffer.concat(await answer.toArray()).toString();
    return { status: answer.statusCode, headers: answer.headers, body };
  }

  /** Sends the bytes of a request, and returns those of the answer. */
  async function rawAnswer(request: string): Promise<string> {
    const { hostname, port } = new URL(router.url);
    const client = connect(Number(port), hostname);
    client.write(request);
    return Buffer.concat(await client.toArray()).toString();
  }

  return {
    coordinator,
    one,
    two,
    nameOf,
    movedName,
    upload,
    rawAnswer,
    get router(): RouterProcess {
      return router;
    },
  };
}

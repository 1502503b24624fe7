/** What the runs of this rig share: a coordinator that can be killed, two cells, and `npm run router`. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { patience } from "../../../demo/patience.ts";
import { freePort } from "../../../src/hosts/workerd/free-port.ts";
import { createClient, type Client } from "../../../src/users/client/index.ts";
import { RouterProcess } from "../../hosts/router/router-process.ts";
import { Server, type HostKind } from "../crash/server.ts";
import { Cell } from "./cell.ts";

export interface StageOptions {
  host: HostKind;
  /** Of the coordinator's state, its log, and the logs of the routers. */
  folder: string;
}

/** Batches of this size fit into the coordinator's default limits. */
const NAMES_OF_LEASE = 50;
const SOURCE_TYPE = "RAILS_TABLE_ROUTES";
/** Long enough for the start of a coordinator on a busy machine. */
const DEADLINE_MS = 300_000;

export class Stage {
  readonly cells: readonly [Cell, Cell] = [new Cell("1"), new Cell("2")];
  readonly #options: StageOptions;
  readonly #routers: RouterProcess[] = [];
  readonly #sources = new Map<string, number>();
  #port = 0;
  #server: Server | undefined;

  constructor(options: StageOptions) {
    this.#options = options;
  }

  async start(): Promise<this> {
    this.#port = await freePort();
    await this.startCoordinator();
    const { url, keys } = this.server;
    const operator = createClient({ ...patience, url, key: keys.operator });
    for (const cell of this.cells) await operator.cells.change(cell.id, { address: await cell.start() });
    return this;
  }

  /** Starts the coordinator, also after it was killed, on the same state and port. */
  async startCoordinator(): Promise<void> {
    const { host, folder } = this.#options;
    this.#server = new Server({ host, kind: "production", port: this.#port, folder });
    if (!(await this.#server.ready()))
      throw new Error(`the coordinator did not start: ${this.#server.output.slice(-500)}`);
  }

  get server(): Server {
    if (this.#server === undefined) throw new Error("the coordinator was not started");
    return this.#server;
  }

  /** Starts a router with these variables, and returns its URL. */
  async startRouter(variables: Readonly<Record<string, string>> = {}): Promise<string> {
    const { url, keys } = this.server;
    const router = new RouterProcess(await freePort(), ["--coordinator", url], {
      ...variables,
      LEASEHOLD_KEY: keys.router,
      ROUTER_SHOW_ROUTE: "on",
    });
    this.#routers.push(router);
    process.once("exit", () => void router.end("SIGKILL"));
    await router.ready();
    return router.url;
  }

  clientOf(cell: Cell): Client {
    const { url, keys } = this.server;
    return createClient({
      ...patience,
      deadlineMs: DEADLINE_MS,
      url,
      key: keys.cells[cell.id] ?? "",
      cell: cell.id,
    });
  }

  /** A client with the key of a router, which asks the coordinator itself. */
  router(): Client {
    const { url, keys } = this.server;
    return createClient({ ...patience, deadlineMs: DEADLINE_MS, url, key: keys.router });
  }

  /** Each name has the same source in all of its claims. */
  claim(name: string): {
    bucket: { type: "ROUTES"; value: string };
    subject: { type: "USER"; id: number };
    source: { type: typeof SOURCE_TYPE; id: number };
  } {
    const id = this.#sources.get(name) ?? this.#sources.size + 1;
    this.#sources.set(name, id);
    return {
      bucket: { type: "ROUTES", value: name },
      subject: { type: "USER", id: 1 },
      source: { type: SOURCE_TYPE, id },
    };
  }

  /** Gives names to a cell, and waits until no lease holds them any more. */
  async give(cell: Cell, names: readonly string[]): Promise<void> {
    const { leases } = this.clientOf(cell);
    for (let at = 0; at < names.length; at += NAMES_OF_LEASE) {
      const creates = names.slice(at, at + NAMES_OF_LEASE).map((name) => this.claim(name));
      await leases.commit((await leases.begin({ creates })).uuid);
    }
    for (const name of names) cell.rows.add(name);
    const buckets = names.map((name) => this.claim(name).bucket);
    while (!(await this.router().routing.findMany(buckets)).every(({ settled }) => settled))
      await new Promise((resume) => setTimeout(resume, 20));
  }

  /** The end of what the routers have printed besides events, for a run with complaints. */
  routerOutput(): string {
    const lines = this.#routers.flatMap(({ stdout, stderr }) => `${stdout}\n${stderr}`.split("\n"));
    return lines
      .filter((line) => line !== "" && !line.startsWith('{"event"'))
      .slice(-40)
      .join("\n");
  }

  async stop(): Promise<void> {
    for (const [place, router] of this.#routers.entries()) {
      const { stderr } = await router.end("SIGTERM");
      writeFileSync(join(this.#options.folder, `router-${place + 1}.log`), `${router.stdout}\n${stderr}`);
    }
    if (this.#server?.isRunning === true) await this.#server.kill("group");
    await Promise.all(this.cells.map((cell) => cell.stop()));
  }
}

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Random } from "../../../demo/random.ts";
import { freePort } from "../../../src/hosts/workerd/free-port.ts";
import { Server } from "../crash/server.ts";
import { CHOICE, CONTROL_PATH, type Choice, type Control, type Ran, type VersionName } from "./control.ts";
import { bundleMixedWorker, makeNextVersion, root } from "./next-version.ts";

/** A problem, as the API answers it. */
export interface Answered {
  status: number;
  body: { code?: string; reason?: string; detail?: string; upgrade?: Upgrade };
}

interface Upgrade {
  format: number;
  newest_format: number;
  is_finished: boolean;
  waiting_features: string[];
  blockers: { part: string; cause: string; detail: string }[];
}

const SHARDS = 16;
const CELLS = ["1", "2", "3", "4"];

/** The objects of the deployment. */
export const objectNames: readonly string[] = [
  "directory",
  ...CELLS.map((cell) => `cell-${cell}`),
  ...Array.from({ length: SHARDS }, (_, shard) => `shard-${shard}`),
];

/** Today's version and the next one in one workerd, on one state. */
export class Mixed {
  /** What the Worker has run since its last start, when it was asked last. */
  ran: Ran = { requests: { today: 0, next: 0 }, cronRuns: { today: 0, next: 0 }, calls: {} };
  readonly #folder: string;
  readonly #random: Random;
  readonly #port: number;
  readonly #worker: string;
  readonly #choice: Choice = { objects: {}, rest: "today", nextShare: 0 };
  #server: Server | undefined;
  /** The folder of the version whose `npm start` runs the Worker. */
  #program = root;

  private constructor(folder: string, seed: number, port: number, worker: string) {
    this.#folder = folder;
    this.#random = new Random(seed, "mixed");
    this.#port = port;
    this.#worker = worker;
  }

  /** Makes the next version, and starts both in a new folder. All objects and requests get today's. */
  static async start(folder: string, seed: number, bug?: string): Promise<Mixed> {
    mkdirSync(folder, { recursive: true });
    makeNextVersion(join(folder, "next"), bug);
    const worker = await bundleMixedWorker(join(folder, "next"), join(folder, "worker"));
    const mixed = new Mixed(folder, seed, await freePort(), worker);
    await mixed.restart();
    return mixed;
  }

  get server(): Server {
    if (this.#server === undefined) throw new Error("the server has not been started");
    return this.#server;
  }

  async restart(): Promise<void> {
    this.#server = new Server({
      kind: { script: join(import.meta.dirname, "mixed-server.ts") },
      port: this.#port,
      folder: this.#folder,
      variables: { LEASEHOLD_SHARDS: String(SHARDS), [CHOICE]: JSON.stringify(this.#choice) },
      args: [this.#program, this.#worker],
    });
    if (!(await this.#server.ready()))
      throw new Error(`the server did not start: ${this.#server.output.slice(-1_000)}`);
  }

  /** Kills everything and starts it again on the same state. */
  async kill(): Promise<void> {
    await this.server.kill("group");
    await this.restart();
  }

  /** From the next start on, `npm start` is that of the next version. */
  useNextProgram(): void {
    this.#program = join(this.#folder, "next");
  }

  /** Gives requests a version. */
  async setWorker(version: VersionName): Promise<void> {
    this.#choice.nextShare = version === "next" ? 1 : 0;
    await this.control({ choice: this.#choice });
  }

  /** Gives all objects and requests a version at once. */
  async setAll(version: VersionName): Promise<void> {
    await this.setWorker(version);
    for (const name of objectNames) await this.setObject(name, version);
  }

  /**
   * Gives the objects a version one after the other, in random order, and requests more and more of it.
   *
   * @param between called after each object
   */
  async shift(version: VersionName, between: () => Promise<void>): Promise<void> {
    const order = this.#random.shuffled(objectNames);
    for (const [index, name] of order.entries()) {
      const done = (index + 1) / order.length;
      // The Workers take more turns than objects, so each meets objects of both versions.
      this.#choice.nextShare = version === "next" ? done : 1 - done;
      await this.setObject(name, version);
      await between();
    }
  }

  /** Updates the code of one object, which ends its instance. */
  async setObject(name: string, version: VersionName): Promise<void> {
    this.#choice.objects[name] = version;
    await this.control({ choice: this.#choice, end: [name] });
  }

  async control(control: Control): Promise<void> {
    for (;;) {
      const answer = await fetch(`${this.server.url}${CONTROL_PATH}`, {
        method: "POST",
        body: JSON.stringify(control),
      }).catch(() => undefined);
      if (answer?.ok === true) {
        this.ran = (await answer.json()) as Ran;
        return;
      }
      // It was killed, or is starting.
      if (answer !== undefined) throw new Error(`the Worker did not obey: ${await answer.text()}`);
      await new Promise((resume) => setTimeout(resume, 100));
    }
  }

  /** Calls the API as an operator, once. */
  async call(method: string, path: string, body?: object): Promise<Answered> {
    const answer = await fetch(`${this.server.url}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${this.server.keys.operator}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: answer.status, body: (await answer.json()) as Answered["body"] };
  }

  async stop(): Promise<number | null> {
    return this.server.stop();
  }

  async close(): Promise<void> {
    if (this.#server?.isRunning === true) await this.#server.kill("group");
  }
}

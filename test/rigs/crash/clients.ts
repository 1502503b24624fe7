import type { ChildProcess } from "node:child_process";
import { mkdirSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Random } from "../../../demo/random.ts";
import type { DevKeys } from "../../../src/hosts/workerd/dev-keys.ts";
import type { LoadClientOptions } from "./client.ts";
import { LocalDatabase } from "./local-database.ts";
import { endOf, killGroup, startGroup } from "./server.ts";

export const cellIds = ["1", "2"] as const;

/** Clients that have recorded so little for so long hang. */
const PATIENCE_MS = 300_000;

export interface ClientsOptions {
  url: string;
  folder: string;
  keys: DevKeys;
  seed: number;
  /** Processes of each cell. */
  processes?: number;
  concurrency?: number;
  names?: number;
  deadlineMs?: number;
}

/** The processes of both cells. */
export class Clients {
  readonly #options: ClientsOptions;
  readonly #running = new Map<string, ChildProcess>();
  kills = 0;
  #started = 0;
  #isEnding = false;

  constructor(options: ClientsOptions) {
    this.#options = options;
    for (const name of ["cells", "records", "history"])
      mkdirSync(join(options.folder, name), { recursive: true });
    // SQLite answers "database is locked", without waiting, if two processes change a new file to WAL at the
    // same time. So the files exist before the processes of a cell start.
    for (const cell of cellIds)
      new LocalDatabase(join(options.folder, "cells", `cell-${cell}.sqlite`)).close();
  }

  /** Starts the processes. After `end`, it starts new ones with other random choices. */
  start(): void {
    this.#isEnding = false;
    for (const cell of cellIds)
      for (let index = 1; index <= (this.#options.processes ?? 2); index += 1)
        this.#start(cell, `cell-${cell}-${index}`);
  }

  get areRunning(): boolean {
    return this.#running.size > 0;
  }

  /** Waits until the clients have recorded this many more bytes. */
  async waitForRecords(bytes: number): Promise<void> {
    const [before, endMs] = [this.#written(), performance.now() + PATIENCE_MS];
    while (this.#written() < before + bytes) {
      if (performance.now() > endMs) throw new Error("the clients record nothing: see clients.log");
      await new Promise((resume) => setTimeout(resume, 50));
    }
  }

  #written(): number {
    const folder = join(this.#options.folder, "records");
    return readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
  }

  /** Kills one process, like a failing machine. Its replacement knows only the cell's database. */
  killOne(random: Random): void {
    const [client] = random.shuffled([...this.#running.keys()]);
    const child = client === undefined ? undefined : this.#running.get(client);
    if (client === undefined || child === undefined || this.#isEnding) return;
    killGroup(child.pid);
    this.kills += 1;
    this.#start(client.slice("cell-".length).split("-")[0] ?? "", client);
  }

  /** `SIGTERM` lets running operations finish; `SIGUSR2` aborts them. */
  async end(signal: "SIGTERM" | "SIGUSR2"): Promise<string[]> {
    this.#isEnding = true;
    const problems: string[] = [];
    for (const child of this.#running.values()) child.kill(signal);
    for (const [client, child] of this.#running) {
      const code = await endOf(child);
      // A process that has just started does not handle signals yet.
      if (code !== 0 && child.signalCode !== signal)
        problems.push(`client ${client} ended with ${code ?? child.signalCode}: see clients.log`);
    }
    this.#running.clear();
    return problems;
  }

  #start(cell: string, client: string): void {
    const { url, folder, keys, seed, concurrency = 4, names = 40, deadlineMs = 60_000 } = this.#options;
    this.#started += 1;
    const options: LoadClientOptions = {
      url,
      folder,
      cell,
      client,
      keys: { cell: keys.cells[cell] ?? "", router: keys.router },
      // A replacement makes other random choices.
      seed: seed * 1_000 + this.#started,
      concurrency,
      names,
      deadlineMs,
    };
    this.#running.set(
      client,
      startGroup("test/rigs/crash/client.ts", [JSON.stringify(options)], {}, join(folder, "clients.log")),
    );
  }
}

import { setTimeout as pause } from "node:timers/promises";
import type { Random } from "../../../demo/random.ts";
import { Server } from "../crash/server.ts";
import { freePort } from "../../../src/hosts/workerd/free-port.ts";
import { startPostgres } from "../../support/databases/postgres.ts";
import type { DatabaseServer } from "../../support/databases/server.ts";
import type { CellConfig } from "./open-cell.ts";

/** The longest time that a killed server stays down. */
const AWAY_MS = 800;

/**
 * The coordinator as `npm start` runs it, and one PostgreSQL for all cells. Both can be killed and started
 * again with their data.
 */
export class Servers {
  readonly #folder: string;
  readonly #port: number;
  readonly #postgres: DatabaseServer;
  #coordinator: Server;

  private constructor(folder: string, port: number, postgres: DatabaseServer) {
    this.#folder = folder;
    this.#port = port;
    this.#postgres = postgres;
    this.#coordinator = this.#newCoordinator();
  }

  static async start(folder: string): Promise<Servers> {
    const servers = new Servers(folder, await freePort(), await startPostgres());
    await servers.#ready();
    return servers;
  }

  /** Creates a cell with an empty database. */
  async config(cell: string): Promise<CellConfig> {
    const { url, keys } = this.#coordinator;
    return {
      url,
      cell,
      key: keys.cells[cell] ?? "",
      databaseUrl: this.#postgres.url(await this.#postgres.createDatabase()),
    };
  }

  async killPostgres(random: Random): Promise<void> {
    this.#postgres.kill();
    await pause(random.between(0, AWAY_MS));
    await this.#postgres.restart();
  }

  async killCoordinator(random: Random): Promise<void> {
    await this.#coordinator.kill("group");
    await pause(random.between(0, AWAY_MS));
    this.#coordinator = this.#newCoordinator();
    await this.#ready();
  }

  async stop(): Promise<void> {
    await this.#coordinator.stop();
    await this.#postgres.stop();
  }

  #newCoordinator(): Server {
    return new Server({ kind: "production", port: this.#port, folder: this.#folder });
  }

  async #ready(): Promise<void> {
    if (!(await this.#coordinator.ready()))
      throw new Error(`the coordinator did not start: ${this.#coordinator.output}`);
  }
}

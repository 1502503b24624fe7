import { subscribe } from "node:diagnostics_channel";
import { writeSync } from "node:fs";
import type { CellDatabase } from "../../../src/users/cell/index.ts";
import type { Fetch } from "../../../src/users/client/index.ts";
import { callOf } from "./call-of.ts";
import type { Fault } from "./flows.ts";
import { REACHED, type Job } from "./job.ts";
import type { Tx } from "./orm.ts";
import type { Point } from "./points.ts";

export interface ArmedPoint extends Pick<Job, "point" | "hit"> {
  /** The failure that is injected before, so that the cell reaches the point. */
  fault: Fault | undefined;
}

const FOREVER = new Int32Array(new SharedArrayBuffer(4));
const never = new Promise<never>(() => {});

/**
 * Stops this process at one point. It reports the point and then blocks the whole process, so that nothing
 * happens between the point and the kill.
 */
export class Breakpoint {
  readonly #armed: ArmedPoint;
  readonly #answers = new Map<string, PromiseWithResolvers<void>>();
  #hits = 0;

  constructor(armed: ArmedPoint) {
    this.#armed = armed;
  }

  /** `fetch`, with the points of the network. */
  readonly fetch: Fetch = async (url, init) => {
    const { operation, uuid } = callOf(init.method, new URL(url).pathname);
    if (operation === "begin" && this.#isNext("row before begin")) return never;
    this.#at(`before ${operation}`);
    if (this.#reaches(`${operation} sent`))
      subscribe("undici:request:bodySent", () => this.#at(`${operation} sent`));
    const response = await fetch(url, init);
    const text = await response.text();
    this.#at(`${operation} answered`);
    if (operation === "begin") this.#answerOf(uuid).resolve();
    if (operation === "begin" && this.#armed.fault === "lost begin") throw new TypeError("fetch failed");
    return { status: response.status, headers: response.headers, text: async () => text };
  };

  /** drizzle logs COMMIT right before it writes it in the same turn. */
  readonly logQuery = (text: string): void => {
    if (text === "commit" && this.#reaches("COMMIT sent")) setImmediate(() => this.#at("COMMIT sent"));
  };

  /** Adds points to the methods of a database. */
  wrap(database: CellDatabase<Tx>): void {
    this.#wrapWrites(database);
    this.#wrapRun(database);
    this.#wrapRow(database);
    for (const name of ["look", "remove", "fence"] as const) this.#wrapAround(database, name);
  }

  #wrapWrites(database: CellDatabase<Tx>): void {
    const insert = database.insert.bind(database);
    const update = database.update.bind(database);
    const remove = database.delete.bind(database);
    const written = <T>(value: T): T => (this.#at("after write"), value);
    database.insert = async (...args) => written(await insert(...args));
    database.update = async (...args) => written(await update(...args));
    database.delete = async (...args) => written(await remove(...args));
  }

  #wrapRun(database: CellDatabase<Tx>): void {
    const run = database.run.bind(database);
    database.run = async (body) => {
      const ran = await run(async (tx) => {
        const value = await body(tx);
        this.#at("before COMMIT");
        return value;
      });
      this.#at(ran.kind === "committed" ? "after COMMIT" : "after undo");
      return ran;
    };
  }

  /**
   * The lease row and the begin are sent at the same time. For a point between the two, one of them waits for
   * the other.
   */
  #wrapRow(database: CellDatabase<Tx>): void {
    const insertLease = database.insertLease.bind(database);
    database.insertLease = async (tx, lease) => {
      const waits = this.#isNext("before row") || this.#armed.fault === "no row";
      if (waits && lease.deferred === undefined) await this.#answerOf(lease.uuid).promise;
      this.#at("before row");
      if (this.#armed.fault === "no row") throw new Error("the row cannot be written");
      await insertLease(tx, lease);
      this.#at("row before begin");
      this.#at("after row");
    };
  }

  #wrapAround(database: CellDatabase<Tx>, name: "look" | "remove" | "fence"): void {
    const inner = database[name].bind(database) as (uuid: string) => Promise<unknown>;
    const wrapped = async (uuid: string): Promise<unknown> => {
      if (name !== "look") this.#at(`before ${name}`);
      const value = await inner(uuid);
      this.#at(`after ${name}`);
      return value;
    };
    Object.assign(database, { [name]: wrapped });
  }

  #isNext(point: Point): boolean {
    return point === this.#armed.point && this.#hits === this.#armed.hit - 1;
  }

  /** Counts a hit of a point that comes shortly after this code. Returns true if this hit counts. */
  #reaches(point: Point): boolean {
    const isNext = this.#isNext(point);
    if (point === this.#armed.point && !isNext) this.#hits += 1;
    return isNext;
  }

  #at(point: Point): void {
    if (point !== this.#armed.point) return;
    this.#hits += 1;
    if (this.#hits !== this.#armed.hit) return;
    writeSync(1, `${REACHED}${point}\n`);
    Atomics.wait(FOREVER, 0, 0);
  }

  #answerOf(uuid: string): PromiseWithResolvers<void> {
    const known = this.#answers.get(uuid) ?? Promise.withResolvers<void>();
    this.#answers.set(uuid, known);
    return known;
  }
}

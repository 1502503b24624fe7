/**
 * Runs a server as `npm run standalone` does, but it kills itself at one durable write: its own process, in
 * the turn of the write.
 */
import type { Ports, Synchronous } from "../../../src/coordinator/kernel/ports.ts";
import type { WritePoint } from "../../../src/coordinator/kernel/write-points.ts";
import { SqliteD1 } from "../../../src/hosts/node/d1.ts";
import type { SqliteDatabase } from "../../../src/hosts/node/sqlite-database.ts";
import type { HttpAnswer, Incoming } from "../../../src/coordinator/api/incoming.ts";
import { Host, type HostOptions } from "../../../src/hosts/node/host.ts";
import { runCron, type CronReport } from "../../../src/coordinator/cron/cron.ts";
import { startStandalone } from "../../../src/hosts/standalone/server.ts";
import { variablesOf } from "../../../src/hosts/workerd/settings.ts";
import { armVariables, CRON_PATH, cronWriteOf, type ObjectKind, type Side } from "./failpoints.ts";

const { [armVariables.point]: point, [armVariables.side]: armedSide } = process.env;
let hitsLeft = Number(process.env[armVariables.hit] ?? 1);

/** Counts a hit. Returns the side of this write at which the process must die, if any. */
function hit(names: readonly string[]): Side | undefined {
  if (point === undefined || !names.includes(point)) return undefined;
  hitsLeft -= 1;
  if (hitsLeft !== 0) return undefined;
  return armedSide === "after" ? "after" : "before";
}

function die(): never {
  process.kill(process.pid, "SIGKILL");
  // The signal is delivered before this line, or at the latest while it waits.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  throw new Error("the process survived its kill");
}

/** Dies before or after `write` if it has one of these names. */
function write<T>(names: readonly string[], carryOut: () => T): T {
  const side = hit(names);
  if (side === "before") die();
  const value = carryOut();
  if (side === "after") die();
  return value;
}

function kindOf(name: string): ObjectKind {
  if (name.startsWith("cell-")) return "ledger";
  return name.startsWith("shard-") ? "shard" : "directory";
}

function failing(name: string, ports: Ports): Ports {
  const { sql } = ports;
  const transaction = <T>(points: readonly WritePoint[], work: () => Synchronous<T>): T =>
    write(
      points.map((each) => `${kindOf(name)}:${each}`),
      () => sql.transaction(points, work),
    );
  const all = <Row>(...args: Parameters<Ports["sql"]["all"]>): Row[] => sql.all<Row>(...args);
  return {
    ...ports,
    sql: { all, transaction, flush: () => sql.flush(), sizeBytes: () => sql.sizeBytes() },
  };
}

/** Names a transaction of the cron by its first statement that writes. */
function failingD1(database: SqliteDatabase): SqliteDatabase {
  let isInTransaction = false;
  let side: Side | undefined;
  const all: SqliteDatabase["all"] = <Row>(
    sql: string,
    ...values: Parameters<SqliteDatabase["all"]>[1][]
  ): Row[] => {
    const name = /^(?:SELECT total_changes|PRAGMA )/.test(sql) ? undefined : cronWriteOf(sql);
    const run = (): Row[] => database.all<Row>(sql, ...values);
    if (name === undefined) return run();
    if (!isInTransaction) return write([name], run);
    side ??= hit([name]);
    if (side === "before") die();
    return run();
  };
  const transaction: SqliteDatabase["transaction"] = (work) => {
    isInTransaction = true;
    side = undefined;
    try {
      return database.transaction(work);
    } finally {
      isInTransaction = false;
      if (side === "after") die();
    }
  };
  return new Proxy(database, {
    get: (target, name) => {
      if (name === "all") return all;
      if (name === "transaction") return transaction;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}

class FailingHost extends Host {
  readonly #d1: SqliteDatabase;

  constructor(options: HostOptions) {
    super({ ...options, portsOf: failing });
    this.#d1 = options.d1;
  }

  override async serve(incoming: Incoming): Promise<HttpAnswer> {
    if (incoming.target !== CRON_PATH) return super.serve(incoming);
    await this.cron();
    return { status: 204, headers: {}, body: null };
  }

  override cron(): Promise<CronReport> {
    return runCron({ ...this.env, DB: new SqliteD1(failingD1(this.#d1)) }, Date.now());
  }
}

const ended = new Promise<void>((end) => process.once("SIGTERM", end));
const server = await startStandalone({
  host: "127.0.0.1",
  port: Number(process.env["PORT"]),
  stateFolder: process.env["LEASEHOLD_STATE"] ?? "",
  variables: variablesOf(process.env),
  makeHost: (options) => new FailingHost(options),
  cronAtStart: false,
  log: (line) => process.stderr.write(`${line}\n`),
  onStorageFailure: (failure) => {
    process.stderr.write(`${failure.message}\n`);
    process.exit(1);
  },
});
process.stdout.write(`Leasehold is ready at ${server.url}\n`);
await ended;
await server.stop();
process.exit(0);

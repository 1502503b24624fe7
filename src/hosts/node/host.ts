import { v4 as newUuid } from "uuid";
import * as kinds from "../../coordinator/capabilities/index.ts";
import type { DirectoryCalls, LedgerCalls, ShardCalls } from "../../coordinator/kernel/methods.ts";
import type { Ports } from "../../coordinator/kernel/ports.ts";
import { useSha256 } from "../../common/sha256.ts";
import type { Env, Namespace } from "../../coordinator/env.ts";
import { refuseUnparsed, serve } from "../../coordinator/api/app.ts";
import { deploy } from "../../coordinator/isolate/deployment.ts";
import type { HttpAnswer, Incoming } from "../../coordinator/api/incoming.ts";
import type { Failure } from "../../coordinator/api/problem.ts";
import { sendRequest } from "../../coordinator/api/web-request.ts";
import { makeDirectory, makeLedger, makeShard } from "../../coordinator/objects/make.ts";
import { withoutQuotes } from "../../coordinator/d1/database.ts";
import { runCron, type CronReport } from "../../coordinator/cron/cron.ts";
import type { WaitUntil } from "../../coordinator/runtime.ts";
import { AlarmQueue, type HostClock, type HostedObject, type Sender } from "./hosted-object.ts";
import { SqliteD1 } from "./d1.ts";
import type { SqliteDatabase } from "./sqlite-database.ts";
import { migrateProjection } from "./migrations.ts";
import { HostedNamespace, type Stubs } from "./namespace.ts";
import type { ObjectStore } from "./object-store.ts";
import { hash } from "node:crypto";

/** It takes a fifth of the time that the library takes, which Workers use. */
export const nodeSha256 = (text: string): string => hash("sha256", text, "hex");

export interface HostOptions {
  clock: HostClock;
  log: Ports["log"];
  /** Variables and secrets, as the Worker gets them. */
  variables: Readonly<Record<string, string>>;
  /** Opens what an object has stored, or makes it. The names are `cell-7`, `shard-0` and `directory`. */
  store: (name: string) => ObjectStore;
  /** The database of the projection. */
  d1: SqliteDatabase;
  /** Changes the ports of an object. Only tests pass it. */
  portsOf?: (name: string, ports: Ports) => Ports;
}

useSha256(nodeSha256);

/** Unfinished work goes on after its request. Whoever waits for it gets its error. */
const waitUntil: WaitUntil = (work) => void work.catch(() => {});

interface Namespaces {
  ledgers: HostedNamespace;
  shards: HostedNamespace;
  directory: HostedNamespace;
}

/** Logs why an instance has ended itself, as the platform does. */
const logging = (name: string, ports: Ports): Ports => ({
  ...ports,
  halt: (reason) => {
    const error = withoutQuotes(reason instanceof Error ? reason.message : String(reason));
    ports.log("instance_ended", { object: name, error });
    ports.halt(reason);
  },
});

/** The Worker, its objects and its D1 database, in this process. */
export class Host {
  readonly #options: HostOptions;
  readonly #d1: SqliteD1;
  readonly #alarms = new AlarmQueue();
  readonly #namespaces: Namespaces;
  /** Isolates keep their caches per `env`, so a new `env` is a new isolate. */
  #env: Env;

  /** Throws if a variable is wrong. */
  constructor(options: HostOptions) {
    this.#options = options;
    const portsOf = (name: string, ports: Ports): Ports =>
      logging(name, options.portsOf?.(name, ports) ?? ports);
    migrateProjection(options.d1);
    this.#d1 = new SqliteD1(options.d1);
    const context = { ...options, alarms: this.#alarms };
    this.#namespaces = {
      ledgers: new HostedNamespace(context, kinds.ledger.methods, (name, ports, sender) =>
        makeLedger({ name }, portsOf(name, ports), this.#envFor(sender)),
      ),
      shards: new HostedNamespace(context, kinds.shard.methods, (name, ports, sender) =>
        makeShard({ name }, portsOf(name, ports), this.#envFor(sender)),
      ),
      directory: new HostedNamespace(context, kinds.directory.methods, (name, ports, sender) =>
        makeDirectory(portsOf(name, ports), this.#envFor(sender)),
      ),
    };
    this.#env = this.#newIsolate();
  }

  get env(): Env {
    return this.#env;
  }

  serve(incoming: Incoming): Promise<HttpAnswer> {
    return serve(incoming, this.#env, waitUntil);
  }

  /** Carries out a request of this process, with the client's certificate in DER if TLS has verified it. */
  dispatch(request: Request, certificate?: Uint8Array): Promise<Response> {
    return sendRequest(request, certificate, (incoming) => this.serve(incoming));
  }

  /** Makes the answer to something that could not be parsed as a request. */
  refuse(failure: Failure): HttpAnswer {
    return refuseUnparsed(failure, this.#env);
  }

  cron(): Promise<CronReport> {
    const { clock, log } = this.#options;
    return runCron(this.#env, clock.now(), { clock, uuid: newUuid, fraction: () => Math.random(), log });
  }

  /** Runs no alarm before `releaseAlarms`, even if it is due. */
  holdAlarms(): void {
    this.#alarms.hold();
  }

  releaseAlarms(): void {
    this.#alarms.release();
  }

  /** Opens an object that has been used before, so that its alarm rings although nothing calls it. */
  open(name: string): void {
    const { ledgers, shards, directory } = this.#namespaces;
    const namespace = name.startsWith("cell-") ? ledgers : name.startsWith("shard-") ? shards : directory;
    namespace.open(name);
  }

  /** Restarts every object and the Worker from what they stored. */
  restart(): void {
    for (const object of this.#objects()) object.restart();
    this.#env = this.#newIsolate();
  }

  /** Waits until the alarms that have started are done. */
  async untilIdle(): Promise<void> {
    await this.#options.clock.turn();
    await this.#alarms.untilIdle();
  }

  /** Ends all work. Nothing is written any more, so what was written can be made durable before `close`. */
  end(): void {
    this.#d1.end();
    for (const namespace of Object.values(this.#namespaces) as HostedNamespace[]) namespace.end();
  }

  close(): void {
    this.end();
    for (const object of this.#objects()) object.close();
    this.#d1.close();
  }

  #objects(): HostedObject[] {
    return Object.values(this.#namespaces).flatMap(({ objects }: HostedNamespace) => [...objects]);
  }

  #newIsolate(): Env {
    const env = this.#envOf((namespace) => namespace);
    const { clock, log } = this.#options;
    deploy(env, { clock, log });
    return env;
  }

  /** What an object gets. */
  #envFor(sender: Sender): Env {
    return this.#envOf((namespace) => namespace.of(sender));
  }

  #envOf(stubsOf: (namespace: HostedNamespace) => Stubs): Env {
    const { ledgers, shards, directory } = this.#namespaces;
    const of = <Calls>(namespace: HostedNamespace): Namespace<Calls> =>
      stubsOf(namespace) as Namespace<Calls>;
    // Stand-ins that have only those parts of the platform's interfaces that the Worker uses.
    return {
      ...this.#options.variables,
      CELL_LEDGER: of<LedgerCalls>(ledgers),
      CLAIM_SHARD: of<ShardCalls>(shards),
      DIRECTORY: of<DirectoryCalls>(directory),
      DB: this.#d1,
    };
  }
}

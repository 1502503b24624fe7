import { Directory } from "../kernel/directory/directory.ts";
import { Ledger } from "../kernel/ledger/ledger.ts";
import type { Stamp } from "../kernel/formats.ts";
import type { Limits } from "../../common/limits.ts";
import type { Envelope, Told } from "../kernel/messages.ts";
import type { MethodList } from "../kernel/method.ts";
import * as kinds from "../capabilities/index.ts";
import type { Peers } from "../kernel/methods.ts";
import type { Ports } from "../kernel/ports.ts";
import { refused } from "../kernel/refusal.ts";
import { Shard } from "../kernel/shard/shard.ts";
import { UnknownTables, type Tables } from "../kernel/tables.ts";
import { configOf, type Env } from "../env.ts";
import { SpanExporter } from "../tracing/exporter.ts";
import { Tracer } from "../tracing/tracer.ts";
import {
  CallTracing,
  intercept,
  type Answer,
  type Call,
  type Interceptor,
  type Target,
} from "./interceptor.ts";
import { DIRECTORY_NAME, ledgerName, numberInName, shardName, type Named } from "./identity.ts";
import { objectsOf } from "./objects.ts";

/** An object of the core, as a Durable Object or a host in Node serves it. */
export interface Served {
  call(method: string, message: Envelope): Promise<Answer>;
  alarm(): Promise<void>;
}

/** Makes the ledger of the cell that the object is named after. */
export function makeLedger(id: Named, ports: Ports, env: Env): Served {
  const cell = numberInName(id, ports.sql, "cell");
  const ledger = { kind: "ledger", part: ledgerName(cell) } as const;
  return make(
    ledger,
    kinds.ledger.methods,
    ports,
    env,
    (limits, peers) => new Ledger(cell, ports, limits, peers, kinds.ledger.halves),
  );
}

/** Makes the shard whose number the object is named after. */
export function makeShard(id: Named, ports: Ports, env: Env): Served {
  const index = Number(numberInName(id, ports.sql, "shard"));
  const shard = { kind: "shard", part: shardName(index) } as const;
  return make(
    shard,
    kinds.shard.methods,
    ports,
    env,
    (limits, peers) => new Shard(index, ports, limits, peers, kinds.shard.halves),
  );
}

export function makeDirectory(ports: Ports, env: Env): Served {
  const directory = { kind: "directory", part: DIRECTORY_NAME } as const;
  return make(
    directory,
    kinds.directory.methods,
    ports,
    env,
    (limits) => new Directory(ports, limits, kinds.directory.halves),
  );
}

interface Core {
  readonly tables: Tables;
  told(): Told;
  alarm?(): Promise<void>;
}

function make(
  object: Pick<Call, "kind" | "part">,
  methods: MethodList,
  { clock, log }: Ports,
  env: Env,
  makeCore: (limits: Limits, peers: Peers) => Core,
): Served {
  const config = configOf(env);
  const { limits, tracing } = config;
  // The spans of an object need no `waitUntil`: a timer keeps it awake.
  const tracer =
    tracing &&
    new Tracer(
      new SpanExporter(object.part, tracing, clock, log),
      () => clock.now(),
      () => {},
    );
  const stamping: Interceptor = {
    before: (_, message) => ({ ...message, ...core.tables.stamp }),
  };
  const sending = [...(tracer === undefined ? [] : [new CallTracing(tracer, "client")]), stamping];
  const serving = tracer === undefined ? [] : [new CallTracing(tracer, "server")];
  let core: Core;
  try {
    core = makeCore(limits, objectsOf(env, config, sending));
  } catch (error) {
    if (!(error instanceof UnknownTables)) throw error;
    log("unknown_tables", { object: object.part, error: error.message });
    const refusal = refused("UNAVAILABLE", `${object.part} cannot be used: ${error.message}`, {
      reason: "UNKNOWN_TABLES",
    });
    // An alarm that ended well would count as done.
    return { call: async () => refusal, alarm: () => Promise.reject(error) };
  }
  return {
    call: async (method, message) => {
      const declared = Object.hasOwn(methods, method) ? methods[method] : undefined;
      if (declared === undefined) throw new TypeError(`the object has no method ${method}`);
      const call = { ...object, method, level: declared.level, message };
      return core.tables.serve(message as Envelope & Stamp, async () => {
        const answer = await intercept(serving, call, core as unknown as Target);
        return declared.tells ? { ...answer, ...core.told() } : answer;
      });
    },
    alarm: async () => {
      const { fault } = core.tables;
      // The cron tells the format in force. An alarm that ended well would count as done.
      if (fault !== undefined) throw new Error(`${object.part}: ${fault}`);
      await core.alarm?.();
    },
  };
}

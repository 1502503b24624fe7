import { Directory } from "../core/directory/directory.ts";
import { Ledger } from "../core/ledger/ledger.ts";
import type { Ports } from "../core/ports.ts";
import { Shard } from "../core/shard/shard.ts";
import type { Config } from "../config.ts";
import { configOf, type Env } from "../env.ts";
import { SpanExporter } from "../tracing/exporter.ts";
import { servedBy } from "../tracing/traced-calls.ts";
import { Tracer } from "../tracing/tracer.ts";
import { numberInName, type Named } from "./identity.ts";
import { DIRECTORY_NAME, ledgerName, objectsOf, shardName } from "./objects.ts";

// Makes the contents of each object, for a Durable Object and for the process of a test.

/** Makes the ledger of the cell that the object is named after. */
export function makeLedger(id: Named, ports: Ports, env: Env): Ledger {
  const config = configOf(env);
  const cell = numberInName(id, ports.sql, "cell");
  const name = ledgerName(cell);
  const tracer = tracerOf(name, ports, config);
  const objects = objectsOf(env, config, tracer);
  const ledger = new Ledger(cell, ports, config.limits, objects);
  return servedBy(ledger, name, tracer);
}

/** Makes the shard whose number the object is named after. */
export function makeShard(id: Named, ports: Ports, env: Env): Shard {
  const config = configOf(env);
  const index = Number(numberInName(id, ports.sql, "shard"));
  const name = shardName(index);
  const tracer = tracerOf(name, ports, config);
  const objects = objectsOf(env, config, tracer);
  const shard = new Shard(index, ports, config.limits, objects);
  return servedBy(shard, name, tracer);
}

export function makeDirectory(ports: Ports, env: Env): Directory {
  const config = configOf(env);
  const directory = new Directory(ports, config.limits);
  return servedBy(directory, DIRECTORY_NAME, tracerOf(DIRECTORY_NAME, ports, config));
}

/** Undefined if nothing is traced. The spans of an object need no `waitUntil`: a timer keeps it awake. */
function tracerOf(name: string, { clock, log }: Ports, { tracing }: Config): Tracer | undefined {
  if (tracing === undefined) return undefined;
  return new Tracer(
    new SpanExporter(name, tracing, clock, log),
    () => clock.now(),
    () => {},
  );
}

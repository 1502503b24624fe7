import { Directory } from "../core/directory/directory.ts";
import { Ledger } from "../core/ledger/ledger.ts";
import type { Ports } from "../core/ports.ts";
import { Shard } from "../core/shard/shard.ts";
import { configOf, type Env } from "../env.ts";
import { numberInName, type Named } from "./identity.ts";
import { objectsOf } from "./objects.ts";

// Makes the contents of each object, for a Durable Object and for the process of a test.

/** Makes the ledger of the cell that the object is named after. */
export function makeLedger(id: Named, ports: Ports, env: Env): Ledger {
  const config = configOf(env);
  const objects = objectsOf(env, config);
  return new Ledger(numberInName(id, ports.sql, "cell"), ports, config.limits, {
    directory: { confirm: (message) => objects.directory().confirm(message) },
    shard: {
      exchange: (shard, message) => objects.shard(shard).exchange(message),
      settle: (shard, message) => objects.shard(shard).settle(message),
      listHolds: (shard, message) => objects.shard(shard).listHolds(message),
    },
  });
}

/** Makes the shard whose number the object is named after. */
export function makeShard(id: Named, ports: Ports, env: Env): Shard {
  const config = configOf(env);
  const objects = objectsOf(env, config);
  return new Shard(Number(numberInName(id, ports.sql, "shard")), ports, config.limits, {
    directory: { confirm: (message) => objects.directory().confirm(message) },
    ledger: {
      inquire: (cell, message) => objects.ledger(cell).inquire(message),
      knowledge: (cell, message) => objects.ledger(cell).knowledge(message),
    },
  });
}

export function makeDirectory(ports: Ports, env: Env): Directory {
  return new Directory(ports, configOf(env).limits);
}

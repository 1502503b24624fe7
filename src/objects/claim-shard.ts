import { DurableObject } from "cloudflare:workers";
import type * as messages from "../core/messages.ts";
import { Shard } from "../core/shard/shard.ts";
import { configOf, type Env } from "../env.ts";
import { numberInName } from "./identity.ts";
import { objectsOf } from "./peers.ts";
import { objectPorts, type PortsOf } from "./ports.ts";

/** One shard of the buckets. All it does is in core/shard. */
export class ClaimShard extends DurableObject<Env> {
  readonly #shard: Shard;

  constructor(ctx: DurableObjectState, env: Env, portsOf: PortsOf = objectPorts) {
    super(ctx, env);
    const config = configOf(env);
    const objects = objectsOf(env, config);
    const ports = portsOf(ctx);
    this.#shard = new Shard(Number(numberInName(ctx.id, ports.sql, "shard")), ports, config.limits, {
      directory: { confirm: (message) => objects.directory().confirm(message) },
      ledger: { inquire: (cell, message) => objects.ledger(cell).inquire(message) },
    });
  }

  exchange(message: messages.Exchange): Promise<messages.Reply<messages.ExchangeAnswer>> {
    return this.#shard.exchange(message);
  }

  settle(message: messages.Settle): Promise<messages.Reply<messages.SettleAnswer>> {
    return this.#shard.settle(message);
  }

  lookup(message: messages.LookupRequest): Promise<messages.Reply<messages.LookupAnswer>> {
    return this.#shard.lookup(message);
  }

  listRecords(message: messages.ListRecordsRequest): Promise<messages.Reply<messages.ListRecordsAnswer>> {
    return this.#shard.listRecords(message);
  }

  ping(message: messages.Envelope): Promise<messages.Reply<null>> {
    return this.#shard.ping(message);
  }

  override alarm(): Promise<void> {
    return this.#shard.alarm();
  }
}

import { DurableObject } from "cloudflare:workers";
import type * as messages from "../core/messages.ts";
import type { Shard } from "../core/shard/shard.ts";
import type { Env } from "../env.ts";
import type { ShardCalls } from "./calls.ts";
import { makeShard } from "./make.ts";
import { objectPorts, type PortsOf } from "./ports.ts";

/** The Durable Object of one shard. The protocol is in core/shard. */
export class ClaimShard extends DurableObject<Env> implements ShardCalls {
  readonly #shard: Shard;

  constructor(ctx: DurableObjectState, env: Env, portsOf: PortsOf = objectPorts) {
    super(ctx, env);
    this.#shard = makeShard(ctx.id, portsOf(ctx), env);
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

  digestRecords(
    message: messages.DigestRecordsRequest,
  ): Promise<messages.Reply<messages.DigestRecordsAnswer>> {
    return this.#shard.digestRecords(message);
  }

  ping(message: messages.Envelope): Promise<messages.Reply<null>> {
    return this.#shard.ping(message);
  }

  override alarm(): Promise<void> {
    return this.#shard.alarm();
  }
}

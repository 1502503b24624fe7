import { DurableObject } from "cloudflare:workers";
import * as kinds from "../capabilities/index.ts";
import { defineMethods } from "../kernel/method.ts";
import type { Env } from "../env.ts";
import { makeDirectory, makeLedger, makeShard, type Served } from "./make.ts";
import { objectPorts, type PortsOf } from "./ports.ts";

/** The Durable Object of one cell's ledger. The protocol is in coordinator/kernel/ledger. */
export class CellLedger extends DurableObject<Env> {
  readonly #ledger: Served;

  static {
    defineMethods<CellLedger>(this.prototype, kinds.ledger.methods, (self, name, message) =>
      self.#ledger.call(name, message),
    );
  }

  constructor(ctx: DurableObjectState, env: Env, portsOf: PortsOf = objectPorts) {
    super(ctx, env);
    this.#ledger = makeLedger(ctx.id, portsOf(ctx), env);
  }

  override alarm(): Promise<void> {
    return this.#ledger.alarm();
  }
}

/** The Durable Object of one shard. The protocol is in coordinator/kernel/shard. */
export class ClaimShard extends DurableObject<Env> {
  readonly #shard: Served;

  static {
    defineMethods<ClaimShard>(this.prototype, kinds.shard.methods, (self, name, message) =>
      self.#shard.call(name, message),
    );
  }

  constructor(ctx: DurableObjectState, env: Env, portsOf: PortsOf = objectPorts) {
    super(ctx, env);
    this.#shard = makeShard(ctx.id, portsOf(ctx), env);
  }

  override alarm(): Promise<void> {
    return this.#shard.alarm();
  }
}

/** The Durable Object of a deployment's directory. The protocol is in coordinator/kernel/directory. */
export class Directory extends DurableObject<Env> {
  readonly #directory: Served;

  static {
    defineMethods<Directory>(this.prototype, kinds.directory.methods, (self, name, message) =>
      self.#directory.call(name, message),
    );
  }

  constructor(ctx: DurableObjectState, env: Env, portsOf: PortsOf = objectPorts) {
    super(ctx, env);
    this.#directory = makeDirectory(portsOf(ctx), env);
  }
}

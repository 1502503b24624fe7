import type { Config } from "../config.ts";
import { defineMethods, type Calls, type MethodList } from "../kernel/method.ts";
import * as kinds from "../capabilities/index.ts";
import type { DirectoryCalls, LedgerCalls, ShardCalls } from "../kernel/methods.ts";
import type { Env } from "../env.ts";
import type { LocationHint } from "../location-hints.ts";
import { DIRECTORY_NAME, ledgerName, shardName } from "./identity.ts";
import { intercept, type Call, type Interceptor, type Target } from "./interceptor.ts";

/**
 * Gives access to the objects. Each call makes a new stub, because a stub that has met a reset fails from
 * then on.
 */
export interface Objects {
  ledger(cell: string, locationHint?: string | null): LedgerCalls;
  shard(index: number): ShardCalls;
  directory(): DirectoryCalls;
}

/** @param interceptors what is done before and after each call */
export function objectsOf(env: Env, config: Config, interceptors: readonly Interceptor[] = []): Objects {
  const { shardLocationHint } = config;
  const shardOptions = shardLocationHint === undefined ? {} : { locationHint: shardLocationHint };
  return {
    ledger: (cell, locationHint) => {
      const name = ledgerName(cell);
      const options = locationHint ? { locationHint: locationHint as LocationHint } : {};
      return new LedgerSender(name, env.CELL_LEDGER.getByName(name, options), interceptors);
    },
    shard: (index) => {
      const name = shardName(index);
      return new ShardSender(name, env.CLAIM_SHARD.getByName(name, shardOptions), interceptors);
    },
    directory: () =>
      new DirectorySender(DIRECTORY_NAME, env.DIRECTORY.getByName(DIRECTORY_NAME), interceptors),
  };
}

type SenderClass<Sends> = new (part: string, stub: Sends, interceptors: readonly Interceptor[]) => Sends;

/** Makes the class of the senders to one kind of object. */
function senderClass<List extends MethodList>(kind: Call["kind"], methods: List): SenderClass<Calls<List>> {
  class Sender {
    readonly #part: string;
    readonly #stub: Target;
    readonly #interceptors: readonly Interceptor[];

    static {
      defineMethods<Sender>(this.prototype, methods, (self, method, message, level) =>
        intercept(self.#interceptors, { kind, part: self.#part, method, level, message }, self.#stub),
      );
    }

    constructor(part: string, stub: object, interceptors: readonly Interceptor[]) {
      this.#part = part;
      this.#stub = stub as Target;
      this.#interceptors = interceptors;
    }
  }
  return Sender as unknown as SenderClass<Calls<List>>;
}

const LedgerSender = senderClass("ledger", kinds.ledger.methods);
const ShardSender = senderClass("shard", kinds.shard.methods);
const DirectorySender = senderClass("directory", kinds.directory.methods);

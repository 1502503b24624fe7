import type { Capability, ShardHalf } from "../../kernel/capability.ts";
import type { LedgerPart } from "../../kernel/ledger/part.ts";
import { peerMethod, type Calls } from "../../kernel/method.ts";
import { ok, type Result } from "../../kernel/refusal.ts";
import { counting } from "../../kernel/serve.ts";
import type { ShardPart } from "../../kernel/shard/part.ts";
import { Waits } from "./ledger.ts";
import type { LeaveQueue, WaitAnswer, WaitForName } from "./messages.ts";
import { NameQueues } from "./shard.ts";

const onShards = {
  wait: peerMethod<WaitForName, WaitAnswer>("peer"),
  leave: peerMethod<LeaveQueue, null>("peer"),
};

declare module "../../kernel/methods.ts" {
  interface ShardCalls extends Calls<typeof onShards> {}
}

const ledger = {
  methods: {},
  make: (part: LedgerPart) => {
    const waits = new Waits(part);
    part.waiter.provide(waits);
    return { handlers: {}, hooks: { metrics: () => waits.metrics } };
  },
};

const shard: ShardHalf<typeof onShards> = {
  methods: onShards,
  make: (part) => {
    const queues = new NameQueues(part.ports.clock, part.limits);
    part.queues.provide(queues);
    let waits = 0;
    return {
      handlers: {
        wait: (message) => wait(part, queues, message),
        leave: (message) => {
          queues.leave(message);
          return ok(null);
        },
      },
      measures: {
        wait: counting(() => {
          waits += 1;
        }),
      },
      hooks: {
        holdChanged: (key, isHeld) => queues.holdChanged(key, isHeld),
        metrics: () => ({ waits, ...queues.counts }),
      },
    };
  },
};

/** Waits in the queue of a name (B11). */
async function wait(
  { residence, store, inquirer }: ShardPart,
  queues: NameQueues,
  message: WaitForName,
): Promise<Result<WaitAnswer>> {
  if (!residence.current.serves(message.key)) return { ok: false, refusal: residence.current.notHere() };
  const hold = store.holdOn(message.key.type, message.key.canonical);
  const isFirst = queues.isFirst(message);
  const state = queues.wait(message, hold !== undefined);
  // The lease of the hold may be over without a message about it (B8). The first that still waits asks.
  if (isFirst && hold !== undefined) inquirer.inquire([hold], message.traces).catch(() => {});
  return ok({ state: await state });
}

/** Begins wait for leased names, and get them in turn (B11). */
export const waiting = { name: "waiting", ledger, shard } as const satisfies Capability;

import { HOLDS } from "../../../support/holds.ts";
import type { Result } from "../../../../src/coordinator/kernel/refusal.ts";
import type {
  BucketKey,
  Envelope,
  Exchange,
  ExchangeAnswer,
} from "../../../../src/coordinator/kernel/messages.ts";
import type { WaitAnswer } from "../../../../src/coordinator/capabilities/waiting/messages.ts";
import { shardsOf } from "../../../../src/coordinator/kernel/placement.ts";
import type { HoldRow } from "../../../../src/coordinator/kernel/shard/rows.ts";
import { nameKey } from "../local.ts";
import type { Sent } from "../network.ts";
import type { Part } from "../part.ts";
import type { Evidence } from "./evidence.ts";
import { attemptOf, factKey } from "./rows.ts";

/** A message of a begin that waits for a name, from its arrival until it is answered. */
interface OpenWait {
  lease: string;
  key: BucketKey;
  instance: unknown;
  arrivedAtMs: number;
  /** The number of the message in the order of their arrival. */
  order: number;
  /** The epoch of the hold that was on the name when the message arrived. */
  epoch: number;
}

/** What the judge knows of a name for which a begin has ever waited. */
interface Awaited {
  part: Part<object>;
  open: Set<OpenWait>;
  /** When each lease came first, as the number of its first message. */
  came: Map<string, number>;
  /** Since when the name has been free, or since its last offer. Undefined while it is held. */
  idleSinceMs: number | undefined;
}

/** Checks the order in which begins get names that others wait for (B11), and that free names go to them. */
export class QueueWatch {
  readonly #evidence: Evidence;
  readonly #nowMs: () => number;
  readonly #awaited = new Map<string, Awaited>();
  readonly #open = new WeakMap<Sent, { wait: OpenWait; of: Awaited }>();
  /** When the last prepare of an attempt was granted, by attempt and shard. */
  readonly #grantedAtMs = new Map<string, Map<string, number>>();
  /** The prepares whose ledger was refused, by attempt and shard. */
  readonly #refused = new Set<string>();
  /** The last attempt of each lease. */
  readonly #attempts = new Map<string, string>();
  #messages = 0;

  constructor(evidence: Evidence) {
    this.#evidence = evidence;
    this.#nowMs = evidence.coordinator.nowMs;
  }

  /** A ledger has sent a message. A begin that waits has released what its last attempt got. */
  sent({ method, message }: Sent): void {
    if (method === "exchange")
      for (const { cell, lease, ...attempt } of (message as Exchange).prepares)
        this.#attempts.set(factKey(cell, lease), attemptOf(cell, attempt));
    if (method !== "wait") return;
    const { cell, lease } = message as { cell: string; lease: string };
    const attempt = this.#attempts.get(factKey(cell, lease)) ?? "";
    const grantedAtMs = Math.max(-Infinity, ...(this.#grantedAtMs.get(attempt)?.values() ?? []));
    // After this time, the release may have failed without being sent (B6).
    const isLate = this.#nowMs() - grantedAtMs >= this.#evidence.coordinator.limits.exchangeTimeoutMs;
    this.#evidence.check(
      "I43",
      isLate || this.#evidence.released.has(attempt),
      () => `lease ${lease} of cell ${cell} waits, but its attempt ${attempt} was not released`,
    );
  }

  delivered(call: Sent): void {
    if (call.method !== "wait") return;
    const { cell, lease, key } = call.message as { cell: string; lease: string; key: BucketKey };
    const part = this.#evidence.coordinator.allShards.find(({ name }) => name === call.to);
    if (part === undefined) return;
    const name = nameKey(key);
    // A name that moves has another queue, to which the begins come again (G6).
    const id = `${part.name} ${name}`;
    const of = this.#awaited.get(id) ?? { part, open: new Set(), came: new Map(), idleSinceMs: undefined };
    this.#awaited.set(id, of);
    const waiter = factKey(cell, lease);
    // Before its first answer, an instance may keep a message back until it knows its placement. Nobody knows
    // its order then, so it counts as early, and waits for nothing. So does a message with another placement,
    // about which the shard asks the directory first (G3).
    if (part.current?.isAdmitted !== true || this.#hasOther(part, call)) {
      of.came.set(waiter, of.came.get(waiter) ?? 0);
      return;
    }
    this.#messages += 1;
    const wait: OpenWait = {
      lease: waiter,
      key,
      instance: part.current,
      arrivedAtMs: this.#nowMs(),
      order: this.#messages,
      epoch: liveHold(part, key)?.epoch ?? 0,
    };
    if (!of.came.has(waiter)) of.came.set(waiter, this.#messages);
    of.open.add(wait);
    this.#open.set(call, { wait, of });
  }

  #hasOther(part: Part<object>, { message }: Sent): boolean {
    const { images, coordinator } = this.#evidence;
    const shards = images[coordinator.allShards.findIndex((each) => each === part)]?.growing.shards;
    return shardsOf((message as Envelope).placement) !== shards;
  }

  /** @param isHeard false: a late copy is answered, or the answer is lost */
  answered(call: Sent, reply: Result<unknown>, isHeard: boolean): void {
    if (call.method === "exchange" && reply.ok)
      this.#answeredExchange(call.to, call.message as Exchange, reply.value as ExchangeAnswer, isHeard);
    const found = this.#open.get(call);
    if (call.method !== "wait" || found === undefined) return;
    const { wait, of } = found;
    of.open.delete(wait);
    if (!reply.ok) return;
    const { state } = reply.value as WaitAnswer;
    this.#evidence.see(`waited: ${state}`);
    if (state === "offered") {
      this.#evidence.see("B11");
      of.idleSinceMs = this.#nowMs();
    }
  }

  /** The begin has missed an offer that its ledger could not read any more (M9). */
  failed(call: Sent): void {
    const found = this.#open.get(call);
    if (found === undefined) return;
    found.of.open.delete(found.wait);
    found.of.idleSinceMs = this.#nowMs();
  }

  #answeredExchange(shard: string, { prepares }: Exchange, answer: ExchangeAnswer, isHeard: boolean): void {
    // The shard has carried out nothing, and the ledger sends the prepares again (H5).
    if (answer.isUnchecked === true) return;
    for (const [index, { cell, ...attempt }] of prepares.entries()) {
      const prepared = answer.prepares[index];
      const id = attemptOf(cell, attempt);
      const granted = this.#grantedAtMs.get(id) ?? new Map<string, number>();
      this.#grantedAtMs.set(id, granted);
      const prepare = `${id}@${shard}`;
      const isGranted = prepared?.granted && prepared.epoch > 0;
      // A late copy that is granted after its ledger was refused leaves a hold, which its shard drops (B8).
      if (isGranted && (isHeard || !this.#refused.has(prepare))) granted.set(shard, this.#nowMs());
      if (isGranted || !isHeard) continue;
      this.#refused.add(prepare);
      granted.delete(shard);
    }
  }

  /** A hold became durable. Nobody whose message was waiting then had come before its lease. */
  held(hold: HoldRow): void {
    const key = { type: hold.bucket_type, canonical: hold.canonical };
    const name = nameKey(key);
    const of = this.#awaited.get(`shard ${this.#evidence.homeOf(key)} ${name}`);
    if (of === undefined) return;
    const winner = factKey(hold.cell, hold.lease);
    const came = of.came.get(winner) ?? Infinity;
    for (const { lease, instance, order, epoch } of of.open) {
      if (instance !== of.part.current || lease === winner || hold.epoch <= epoch) continue;
      this.#evidence.check(
        "I41",
        came < order,
        () => `lease ${winner} got ${name}, for which lease ${lease} has waited longer`,
      );
    }
  }

  /** Called after every step. */
  observe(): void {
    for (const [name, of] of this.#awaited) {
      for (const wait of of.open) if (wait.instance !== of.part.current) of.open.delete(wait);
      const [first] = of.open;
      if (first === undefined || liveHold(of.part, first.key) !== undefined) {
        of.idleSinceMs = undefined;
        continue;
      }
      of.idleSinceMs ??= this.#nowMs();
      // Each begin that came before may miss an offer that it was not told.
      const mostMs = (2 + of.came.size) * this.#evidence.coordinator.limits.offerMs;
      const idleSinceMs = Math.max(of.idleSinceMs, first.arrivedAtMs);
      this.#evidence.check(
        "I42",
        this.#nowMs() - idleSinceMs <= mostMs,
        () => `${name} is free, and lease ${first.lease} has waited for more than ${mostMs} ms`,
      );
    }
  }
}

const liveHold = ({ disk }: Part<object>, { type, canonical }: BucketKey): { epoch: number } | undefined =>
  disk.all<{ epoch: number }>(
    `SELECT epoch FROM ${HOLDS} WHERE bucket_type = ? AND canonical = ?`,
    [type, canonical],
    undefined,
  )[0];

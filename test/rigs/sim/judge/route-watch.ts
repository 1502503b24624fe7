import type { PlacedLease } from "../../../../src/coordinator/kernel/messages.ts";
import type { Positions, RouteAnswer } from "../../../../src/users/router/index.ts";
import { nameKey, type Name } from "../local.ts";
import type { RouterSettings } from "../simulation-settings.ts";
import type { Evidence } from "./evidence.ts";
import { Truths } from "./truths.ts";

/** An answer of a router, and what it was asked. */
export interface Routed {
  /** The router, and how often it was started: a restart forgets what it has shown. */
  router: string;
  name: Name;
  /** The name as it was asked for. */
  spelling: string;
  startedMs: number;
  /** False if the router's clock was set back during the call: it cannot know how long the call took. */
  isAgeKnown: boolean;
  answer: RouteAnswer;
  /** The write whose positions the question carried. */
  own?: OwnWrite | undefined;
}

/** A lease of a client that was told its positions. */
export interface OwnWrite {
  names: readonly Name[];
  positions: Positions;
  /** From this moment on, lookups show the lease. */
  sinceMs: number;
}

const MOST_WRITES = 12;

/** A memory with room for the floors of all names. */
const ROOM_BYTES = 100_000;

/** Checks the answers of routers against the whole history of every name. */
export class RouteWatch {
  /** The last leases whose positions a client knows. */
  readonly writes: OwnWrite[] = [];
  readonly #evidence: Evidence;
  readonly #settings: RouterSettings;
  readonly #names: readonly Name[];
  readonly #truths: Truths;
  /** By name, what waits for its next change. */
  readonly #waiting = new Map<string, (() => void)[]>();
  /**
   * The largest position that each router has shown of each name, and the largest epoch of each spelling.
   * Epochs are by spelling, because hashes of different names may be equal, and their epochs are not ordered.
   */
  readonly #positions = new Map<string, number>();
  readonly #epochs = new Map<string, number>();
  /** The shard of the last answer that each router has shown of each name. */
  readonly #shards = new Map<string, number>();

  /** @param changed called when lookups show something else of a name */
  constructor(
    evidence: Evidence,
    settings: RouterSettings,
    names: readonly Name[],
    changed: (name: Name) => void,
  ) {
    this.#evidence = evidence;
    this.#settings = settings;
    this.#names = names;
    this.#truths = new Truths(evidence, names, (name) => {
      changed(name);
      const waiting = this.#waiting.get(nameKey(name)) ?? [];
      this.#waiting.delete(nameKey(name));
      for (const each of waiting) each();
    });
  }

  /** Calls `then` when lookups show something else of the name. */
  whenChanged(name: Name, then: () => void): void {
    this.#waiting.set(nameKey(name), [...(this.#waiting.get(nameKey(name)) ?? []), then]);
  }

  /** Must be called whenever something became durable. */
  refresh(): void {
    this.#truths.refresh();
  }

  /** A client was told the positions of its lease (Q9). */
  wrote(cell: string, { lease, state, positions }: PlacedLease): void {
    const fact = this.#evidence.factOf(cell, lease);
    const sinceMs = state === "GRANTED" ? fact?.seenAtMs : fact?.decidedAtMs;
    if (positions === undefined || fact === undefined || sinceMs === undefined) return;
    const wanted = new Set(fact.ops.map((op) => nameKey(op)));
    // A shard on which the lease found nothing to destroy has no position: the lease changes nothing there.
    const names = this.#names.filter(
      (name) => wanted.has(nameKey(name)) && positions[this.#shardOf(name)] !== undefined,
    );
    if (names.length === 0) return;
    this.writes.push({
      names,
      positions: new Map(Object.entries(positions).map(([shard, position]) => [Number(shard), position])),
      sinceMs,
    });
    if (this.writes.length > MOST_WRITES) this.writes.shift();
  }

  answered(routed: Routed): void {
    const { answer } = routed;
    this.#evidence.see(`routed ${answer.kind}`);
    if (answer.kind !== "found" && answer.kind !== "none") return;
    this.#evidence.see(`routed by ${answer.layer}`);
    this.#checkTruth(routed, answer);
    this.#checkOrder(routed, answer);
    this.#note(routed, answer);
  }

  #checkTruth(
    { router, name, startedMs, isAgeKnown, own }: Routed,
    answer: Extract<RouteAnswer, { kind: "found" | "none" }>,
  ): void {
    const key = nameKey(name);
    const nowMs = this.#evidence.coordinator.nowMs();
    const shown = answer.kind === "found" ? `cell ${answer.cell.id} epoch ${answer.epoch}` : "none";
    const isStale = answer.kind === "found" && answer.isStale;
    const { graceMs } = this.#settings;
    const bounds: [what: string, fromMs: number][] = [];
    if (isAgeKnown) bounds.push(["its age", nowMs - answer.ageMs]);
    if (isStale) bounds.push(["the grace period", nowMs - graceMs]);
    else bounds.push(["the bound", Math.min(nowMs - this.#boundMs(answer.kind), startedMs)]);
    // A position of the new shard of a name says nothing about an entry of the old one (G9).
    if (own?.positions.has(answer.shard) === true) bounds.push(["the client's write", own.sinceMs]);
    for (const [what, fromMs] of bounds)
      this.#evidence.check(
        "I31",
        this.#truths.wasTrue(key, shown, fromMs),
        () =>
          `${router} shows ${key} as ${shown}${isStale ? ", stale" : ""}, from its ${answer.layer}, ` +
          `${answer.ageMs} ms old, which was not true since ${what}, ${nowMs - fromMs} ms ago: ` +
          this.#truths.describe(key, fromMs),
      );
    this.#evidence.require(
      "I31",
      answer.settled || answer.layer === "coordinator",
      () => `${router} shows an answer about ${key} from its ${answer.layer} that is not settled`,
    );
  }

  #checkOrder(
    { router, name, spelling }: Routed,
    answer: Extract<RouteAnswer, { kind: "found" | "none" }>,
  ): void {
    const ids = { key: `${router} ${nameKey(name)}`, spelling: `${router} ${spelling}` };
    const before = {
      epoch: this.#epochs.get(ids.spelling) ?? 0,
      position: this.#positions.get(ids.key) ?? 0,
    };
    const shard = this.#shards.get(ids.key) ?? 0;
    // A router that has no room for all floors may forget that a name has moved, and its epoch.
    const hasRoom = this.#settings.memoryBytes >= ROOM_BYTES;
    if (answer.shard < shard && !hasRoom) return;
    const epoch = answer.kind === "found" ? answer.epoch : before.epoch;
    this.#evidence.check(
      "I32",
      (epoch >= before.epoch || !hasRoom) && answer.position >= before.position,
      () =>
        `${router} shows ${spelling} with epoch ${epoch} at position ${answer.position} of shard ` +
        `${answer.shard}, after epoch ${before.epoch} at position ${before.position} of shard ${shard}`,
    );
    this.#epochs.set(ids.spelling, epoch);
    this.#positions.set(ids.key, answer.position);
    this.#shards.set(ids.key, answer.shard);
  }

  /** Notes which rules the answer shows at work. */
  #note({ own }: Routed, answer: Extract<RouteAnswer, { kind: "found" | "none" }>): void {
    if (!answer.settled) this.#evidence.see("Q2");
    if (answer.layer !== "coordinator" && answer.ageMs > 0) this.#evidence.see("Q4");
    if (answer.layer !== "coordinator" && answer.kind === "none") this.#evidence.see("Q7");
    if (own !== undefined) this.#evidence.see("Q9");
    if (answer.kind === "found" && answer.isStale) this.#evidence.see("Q8");
    else if (answer.layer !== "coordinator" && answer.ageMs > this.#plainMaxAgeMs) this.#evidence.see("Q5");
  }

  get #plainMaxAgeMs(): number {
    const { reports, maxAgeMs, boundMs } = this.#settings;
    return reports ? Math.min(maxAgeMs, boundMs) : maxAgeMs;
  }

  #boundMs(kind: "found" | "none"): number {
    const { reports, maxAgeMs, boundMs, negativeMaxAgeMs } = this.#settings;
    if (reports) return boundMs;
    return kind === "none" ? Math.min(negativeMaxAgeMs, maxAgeMs) : maxAgeMs;
  }

  #shardOf({ type, canonical }: Name): number {
    return this.#evidence.homeOf({ type, canonical });
  }
}

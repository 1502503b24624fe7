import type { Limits } from "../../../common/limits.ts";
import type { BeginRequest, Decision, HeldKey, Holder, Op, Prepare, PrepareAnswer } from "../messages.ts";
import { shardsOf, type Placement } from "../placement.ts";
import type { Answer, Clock } from "../ports.ts";
import type { Conflict, Refusal } from "../refusal.ts";
import type { Traces } from "../traces.ts";
import type { KindAnswers, KindBegin } from "./lease-kind.ts";
import type { ShardLinks } from "./shard-links.ts";

/**
 * How one attempt ended. Only `granted` can become a lease. After any other end, the holds of the attempt
 * must be released (B6).
 */
export type AttemptEnd =
  | { kind: "granted"; epochs: Map<number, number>; missing: number; answers: KindAnswers }
  /** Only temporary conflicts. `held` lists their keys, by shard. */
  | { kind: "leased"; conflicts: Conflict[]; held: Map<number, HeldKey[]> }
  | { kind: "conflicts"; conflicts: Conflict[] }
  | { kind: "refused"; refusal: Refusal }
  | { kind: "unknown"; timedOut: boolean };

type ShardAnswer = "waiting" | Answer<PrepareAnswer>;

/** One attempt of one begin. It asks each shard at most once (B3) and then reports how it ended. */
export class Attempt {
  readonly #clock: Clock;
  readonly #links: ShardLinks;
  readonly #limits: Limits;
  readonly #holder: Holder;
  readonly #options: Pick<BeginRequest, "allowMissing" | "isVerification">;
  readonly #traces: Traces;
  readonly #kind: KindBegin | undefined;
  /** The one with which the ops have their shards. */
  readonly #placement: Placement;
  readonly #byShard: ReadonlyMap<number, Op[]>;
  readonly #answers = new Map<number, ShardAnswer>();
  readonly #signal = { isOver: false };

  constructor(
    clock: Clock,
    links: ShardLinks,
    limits: Limits,
    holder: Holder,
    { ops, allowMissing, isVerification, placement, traces }: BeginRequest,
    kind?: KindBegin,
  ) {
    this.#clock = clock;
    this.#links = links;
    this.#limits = limits;
    this.#holder = holder;
    this.#options = { allowMissing, ...(isVerification === true ? { isVerification } : {}) };
    this.#traces = traces;
    this.#kind = kind;
    this.#placement = placement;
    this.#byShard =
      kind === undefined
        ? Map.groupBy(
            ops.toSorted((a, b) => a.shard - b.shard),
            ({ shard }) => shard,
          )
        : new Map(Array.from({ length: shardsOf(placement) }, (_, shard) => [shard, []]));
  }

  async inParallel(deadlineMs: number): Promise<AttemptEnd> {
    await this.#until(deadlineMs, Promise.all([...this.#byShard.keys()].map((shard) => this.#ask(shard))));
    return this.#evaluate(deadlineMs);
  }

  /**
   * Asks the shards one after the other, in ascending order, and stops at the first one that does not grant
   * (B9).
   */
  async ascending(deadlineMs: number): Promise<AttemptEnd> {
    const inOrder = async (): Promise<void> => {
      for (const shard of this.#byShard.keys()) {
        const answer = await this.#ask(shard);
        if (this.#signal.isOver || answer.kind !== "ok" || !answer.value.granted) return;
      }
    };
    await this.#until(deadlineMs, inOrder());
    return this.#evaluate(deadlineMs);
  }

  /** Returns whether the shard has carried out the prepare. */
  hasAnswer(shard: number): boolean {
    const answer = this.#answers.get(shard);
    return answer !== undefined && answer !== "waiting" && answer.kind === "ok";
  }

  async #ask(shard: number): Promise<Answer<PrepareAnswer>> {
    this.#answers.set(shard, "waiting");
    const ops = this.#byShard.get(shard) ?? [];
    const prepare: Prepare = { ...this.#holder, ops, ...this.#options, ...this.#kind?.prepareOn(shard) };
    const answer = await this.#links.prepare(shard, this.#placement, prepare, this.#signal, this.#traces);
    if (!this.#signal.isOver) this.#answers.set(shard, answer);
    return answer;
  }

  /** Waits for `work` until the deadline. Later answers are ignored, so nothing is granted late. */
  async #until(deadlineMs: number, work: Promise<unknown>): Promise<void> {
    // If the clock went back, the deadline is further away than any wait should last.
    const longestMs = Math.max(this.#limits.beginDeadlineMs, this.#limits.exchangeTimeoutMs);
    const waitMs = Math.min(Math.max(0, deadlineMs - this.#clock.now()), longestMs);
    await new Promise<void>((resolve) => {
      const cancel = this.#clock.after(waitMs, resolve);
      void work.then(() => {
        cancel();
        resolve();
      });
    });
    this.#signal.isOver = true;
  }

  #evaluate(deadlineMs: number): AttemptEnd {
    const conflicts: Conflict[] = [];
    const held = new Map<number, HeldKey[]>();
    const granted: KindAnswers[number][] = [];
    const epochs = new Map<number, number>();
    let missing = 0;
    let unknown = false;
    for (const [shard, answer] of this.#answers) {
      if (answer === "waiting" || answer.kind === "unknown") unknown = true;
      else if (answer.kind === "refused") return { kind: "refused", refusal: answer.refusal };
      else if (answer.value.granted) {
        // With epoch 0 the shard holds nothing, so no decision has to be sent to it.
        if (answer.value.epoch > 0) epochs.set(shard, answer.value.epoch);
        missing += answer.value.missing;
        if (this.#kind !== undefined) granted.push({ shard, ...answer.value });
      } else {
        conflicts.push(...answer.value.conflicts);
        if (answer.value.held.length > 0) held.set(shard, answer.value.held);
      }
    }
    if (conflicts.some(({ kind }) => kind !== "leased")) return { kind: "conflicts", conflicts };
    if (unknown) return { kind: "unknown", timedOut: this.#clock.now() >= deadlineMs };
    if (conflicts.length > 0) return { kind: "leased", conflicts, held };
    // A shard that was not asked has not granted its ops.
    if (this.#answers.size < this.#byShard.size) return { kind: "unknown", timedOut: true };
    const refusal = this.#kind?.refuseGrant(granted);
    if (refusal !== undefined) return { kind: "refused", refusal };
    return { kind: "granted", epochs, missing, answers: granted };
  }

  /**
   * Releases every hold that this attempt may have, including holds on shards whose answer is unknown.
   * Resolves when every release is acknowledged or has failed (B6). A shard that missed its release inquires
   * later (B8). Holds may have moved to other shards since the attempt (G6).
   */
  async release(): Promise<void> {
    const signal = { isOver: false };
    const releases = [...this.#answers].flatMap(([shard, answer]): Promise<unknown>[] => {
      if (answer !== "waiting" && answer.kind === "ok" && !(answer.value.granted && answer.value.epoch > 0))
        return [];
      if (this.#kind === undefined) return [this.#releaseOn(this.#byShard.get(shard) ?? [], signal)];
      const decision = { ...this.#released, ...this.#kind.released };
      return [this.#links.decide(shard, decision, 1, signal, this.#traces)];
    });
    await this.#until(this.#clock.now() + this.#limits.exchangeTimeoutMs, Promise.all(releases));
    signal.isOver = true;
  }

  get #released(): Decision {
    return { ...this.#holder, outcome: "ROLLED_BACK", epoch: null };
  }

  /** Releases the holds on the names of one shard, which may have several shards by now (G6). */
  async #releaseOn(ops: readonly Op[], signal: { isOver: boolean }): Promise<void> {
    const { placement } = this.#links;
    const byShard = Map.groupBy(ops, (op) => this.#links.shardNow(op));
    const answers = await Promise.all(
      [...byShard].map(([shard, each]) => {
        const keys = each.map(({ type, canonical }) => ({ type, canonical }));
        return this.#links.decide(shard, { ...this.#released, keys }, keys.length, signal, this.#traces);
      }),
    );
    const isRefused = answers.some(({ kind }) => kind !== "ok");
    if (isRefused && this.#links.placement !== placement) await this.#releaseOn(ops, signal);
  }
}

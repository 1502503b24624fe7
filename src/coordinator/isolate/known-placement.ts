import { placementOf, shardsOf, type Placement } from "../kernel/placement.ts";
import type { Answer, Call, Interceptor } from "../objects/interceptor.ts";
import { FORMAT } from "../kernel/formats.ts";
import type { Envelope } from "../kernel/messages.ts";

/**
 * The placement that an isolate, or a run of the cron, computes with. It starts as a guess: the number of
 * shards with which a new deployment starts. The directory and the objects only tell placements that are in
 * force, so the first of them replaces the guess. Later ones count if they have more shards, because a
 * deployment only grows.
 */
export class KnownPlacement implements Interceptor {
  #current: Placement;
  #isGuess = true;

  constructor(initialShards: number) {
    this.#current = placementOf(initialShards);
  }

  get current(): Placement {
    return this.#current;
  }

  get shards(): number {
    return shardsOf(this.#current);
  }

  /** A placement with another hash or another canonical form is of no use to this code. */
  learn(placement: Placement): void {
    const shards = shardsOf(placement);
    if (placement !== placementOf(shards)) return;
    if (!this.#isGuess && shards <= this.shards) return;
    this.#current = placement;
    this.#isGuess = false;
  }

  /** Refusals tell which placement is in force. */
  after(_: Call, answer: Answer | undefined): void {
    if (answer === undefined || answer.ok || answer.refusal.reason !== "PLACEMENT_MISMATCH") return;
    const { placement } = answer.refusal;
    if (placement !== undefined) this.learn(placement);
  }
}

/**
 * The format in force, as an isolate or a run of the cron knows it from answers. 0 until the first one.
 * Stamps all messages (M9).
 */
export class KnownFormat implements Interceptor {
  readonly #speaks: number;
  #format = 0;

  /** @param speaks the newest format that the code speaks. Only the simulator gives it. */
  constructor(speaks = FORMAT) {
    this.#speaks = speaks;
  }

  get format(): number {
    return this.#format;
  }

  before(_: Call, message: Envelope): Envelope {
    return { ...message, speaks: this.#speaks, format: this.#format } as Envelope;
  }

  after(_: Call, answer: Answer | undefined): void {
    this.#format = Math.max(this.#format, answer?.format ?? 0);
  }
}

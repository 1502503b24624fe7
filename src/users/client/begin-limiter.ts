import { unknown, type Answer, type Refused, type Unknown } from "./answer.ts";
import { Breaker, type BeginResult, type BreakerOptions } from "./breaker.ts";
import { callHook, type Hooks } from "./hooks.ts";

export interface BeginLimit {
  /**
   * The most begins under way at a time: 300 by default, which is also the coordinator's limit for a cell.
   */
  max?: number | undefined;
  /**
   * What happens to begins above `max`: `"refuse"` (the default) fails them at once, `"warn"` sends them and
   * calls `hooks.onTooManyBegins`.
   */
  onFull?: "refuse" | "warn" | undefined;
}

interface BeginUnderWay {
  /** Whether it may wait for names. */
  mayWait: boolean;
  /** When it has ended at the latest, by `performance.now()`. */
  endMs: number;
}

const MAX_BEGINS = 300;
/** The share of begins that may wait for names, as at the coordinator. */
const WAITING_SHARE = 1 / 3;
const RETRY_AFTER_MS = 1_000;

/**
 * Limits begins. A begin may hold a database transaction open, so their number is limited, and they fail at
 * once while the coordinator does not answer. Commits and rollbacks never come here: they release what begins
 * took (C6).
 */
export class BeginLimiter {
  readonly #max: number;
  readonly #onFull: "refuse" | "warn";
  readonly #breaker: Breaker | undefined;
  readonly #hooks: Hooks | undefined;
  readonly #underWay = new Set<BeginUnderWay>();

  constructor(
    { max = MAX_BEGINS, onFull = "refuse" }: BeginLimit,
    breaker: BreakerOptions | false,
    hooks: Hooks | undefined,
  ) {
    this.#max = max;
    this.#onFull = onFull;
    this.#hooks = hooks;
    this.#breaker =
      breaker === false ? undefined : new Breaker(breaker, (state) => callHook(hooks?.onBreaker, { state }));
  }

  /**
   * Runs a begin if there is room for it. If it `waits`, it may keep its room for long. So it is told whether
   * it may wait, which leaves room for begins that don't.
   *
   * @param withinMs the longest time that `begin` takes. Afterwards it has no room any more: in a Worker, it
   *   never ends if its request is cancelled
   * @param waits whether it wants to wait for names
   */
  async run<T>(
    begin: (mayWait: boolean) => Promise<Answer<T>>,
    withinMs: number,
    waits: boolean,
  ): Promise<Answer<T>> {
    const nowMs = performance.now();
    for (const each of this.#underWay) if (each.endMs < nowMs) this.#underWay.delete(each);
    if (this.#underWay.size >= this.#max) {
      if (this.#onFull === "refuse") return tooManyBegins(this.#max);
      callHook(this.#hooks?.onTooManyBegins, { underWay: this.#underWay.size + 1, max: this.#max });
    }
    const entered = this.#breaker?.enter() ?? { isProbe: false };
    if ("waitMs" in entered) return circuitOpen(entered.waitMs);
    const waiting = [...this.#underWay].filter(({ mayWait }) => mayWait).length;
    const mayWait = waits && waiting < this.#max * WAITING_SHARE;
    const its = { mayWait, endMs: nowMs + withinMs };
    this.#underWay.add(its);
    // If `begin` throws, the coordinator was never asked.
    let result: BeginResult = "cancelled";
    try {
      const answer = await begin(mayWait);
      result = resultOf(answer);
      return answer;
    } finally {
      this.#underWay.delete(its);
      this.#breaker?.ended(entered, result);
    }
  }
}

function resultOf(answer: Answer<unknown>): BeginResult {
  // A refusal with the status 0 is this client's own: nothing was sent.
  if (answer.kind === "refused" && answer.status === 0) return "cancelled";
  if (answer.kind !== "unknown") return "answered";
  return answer.why === "cancelled" || answer.outcomeKnown ? "cancelled" : "unknown";
}

const tooManyBegins = (max: number): Refused => ({
  kind: "refused",
  status: 0,
  code: "RESOURCE_EXHAUSTED",
  reason: "TOO_MANY_BEGINS_HERE",
  detail: `this process has ${max} begins under way, which is its limit (\`begins.max\`)`,
  conflicts: [],
  retryable: true,
  retryAfterMs: RETRY_AFTER_MS,
  outcomeKnown: true,
});

const circuitOpen = (retryAfterMs: number): Unknown =>
  unknown(
    "the coordinator did not answer the last begins, so this one was not sent (the circuit breaker is open)",
    {
      retryAfterMs,
      outcomeKnown: true,
    },
  );

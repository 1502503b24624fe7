import { unknown, type Answer, type Refused, type Unknown } from "./answer.ts";
import { Breaker, type BeginResult, type BreakerOptions } from "./breaker.ts";
import { callHook, type Hooks } from "./hooks.ts";

export interface BeginLimit {
  /** Begins under way at a time: 300 by default, as many as the coordinator takes of a cell. */
  max?: number | undefined;
  /** `"refuse"` (the default) fails those beyond at once; `"warn"` lets them pass and tells `hooks.onTooManyBegins`. */
  onFull?: "refuse" | "warn" | undefined;
}

const MAX_BEGINS = 300;
const RETRY_AFTER_MS = 1_000;

/**
 * Every begin passes here, and nothing else does: a begin may hold a database transaction open, so its number is limited, and it is pointless
 * while the coordinator does not answer. Commits and rollbacks free what begins took, and are never held back (rule C6).
 */
export class BeginLimiter {
  readonly #max: number;
  readonly #onFull: "refuse" | "warn";
  readonly #breaker: Breaker | undefined;
  readonly #hooks: Hooks | undefined;
  #underWay = 0;

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

  async run<T>(begin: () => Promise<Answer<T>>): Promise<Answer<T>> {
    if (this.#underWay >= this.#max) {
      if (this.#onFull === "refuse") return tooManyBegins(this.#max);
      callHook(this.#hooks?.onTooManyBegins, { underWay: this.#underWay + 1, max: this.#max });
    }
    const entered = this.#breaker?.enter() ?? { isProbe: false };
    if ("waitMs" in entered) return circuitOpen(entered.waitMs);
    this.#underWay += 1;
    // What throws says nothing about the coordinator either: it was never asked.
    let result: BeginResult = "cancelled";
    try {
      const answer = await begin();
      result = resultOf(answer);
      return answer;
    } finally {
      this.#underWay -= 1;
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
  detail: `this process has ${max} begins under way, which is its limit`,
  conflicts: [],
  retryable: true,
  retryAfterMs: RETRY_AFTER_MS,
  outcomeKnown: true,
});

/** Nothing was sent. */
const circuitOpen = (retryAfterMs: number): Unknown =>
  unknown(
    "the coordinator did not answer the last begins, so this one was not sent (the circuit breaker is open)",
    {
      retryAfterMs,
      outcomeKnown: true,
    },
  );

import { drizzle, type DrizzleD1Database } from "drizzle-orm/d1";
import { ask } from "../core/ask.ts";
import { ok, refused, type Result } from "../core/refusal.ts";
import type { Env } from "../env.ts";
import { defaultRuntime, type Runtime } from "../runtime.ts";
import { withoutQuotes } from "./failure.ts";

export type Orm = DrizzleD1Database;

interface Bounds {
  timeoutMs: number;
  attempts: number;
}

/** D1 fails now and then, and has stalled for a minute: nobody waits for it longer than this, twice. */
export const DEFAULT_BOUNDS: Bounds = { timeoutMs: 10_000, attempts: 2 };
/** Between two attempts: long enough for a moved database to be found again. */
const PAUSE_MS = 100;

/**
 * The only way to D1. Every access is bounded in time and ends in a value; a failure is tried once more, so that all work must be safe to do
 * twice, also when the first try was carried out after all. Made anew for each request or run: once D1 has stalled, it is not asked again.
 */
export class Database {
  readonly #orm: Orm;
  readonly #bounds: Bounds;
  readonly #runtime: Runtime;
  #stalled = false;

  constructor(env: Env, bounds: Partial<Bounds> = {}, runtime = defaultRuntime) {
    this.#orm = drizzle(env.DB);
    this.#bounds = { ...DEFAULT_BOUNDS, ...bounds };
    this.#runtime = runtime;
  }

  /** `name` says in the log what was tried. */
  async run<T>(name: string, work: (orm: Orm) => Promise<T>): Promise<Result<T>> {
    const { timeoutMs, attempts } = this.#bounds;
    const { clock, log } = this.#runtime;
    let cause = "it did not answer in time before";
    for (let attempt = 1; attempt <= attempts && !this.#stalled; attempt += 1) {
      if (attempt > 1) await new Promise<void>((resume) => void clock.after(PAUSE_MS, resume));
      const answer = await ask(clock, timeoutMs, () => outcomeOf(work(this.#orm)));
      if (answer.kind === "ok") return ok(answer.value);
      // A stall hits all queries at once: others need not wait for the same end.
      if (answer.kind === "unknown" && attempt === attempts) this.#stalled = true;
      cause = answer.kind === "unknown" ? answer.cause : answer.refusal.detail;
      log("database_failed", { name, attempt, cause });
    }
    return refused("UNAVAILABLE", `the fleet record cannot be reached: ${cause}`, { retryAfterMs: 1_000 });
  }
}

async function outcomeOf<T>(work: Promise<T>): Promise<Result<T>> {
  try {
    return ok(await work);
  } catch (error) {
    return refused("UNAVAILABLE", messageOf(error));
  }
}

/** What D1 itself said. The wrapping error of drizzle is left out: it repeats the bound values, and those hold names. */
function messageOf(error: unknown): string {
  let inner = error;
  while (inner instanceof Error && inner.cause !== undefined) inner = inner.cause;
  return withoutQuotes(inner instanceof Error ? inner.message : String(inner));
}

import type { Principal } from "../../../auth/principal.ts";
import type { Limits } from "../../../../common/limits.ts";
import type { Result } from "../../../kernel/refusal.ts";
import type { Env } from "../../../env.ts";
import { saveCredentialUses, type CredentialUse } from "./credential-uses.ts";
import { Database } from "../../../d1/database.ts";
import { defaultRuntime, type Runtime, type WaitUntil } from "../../../runtime.ts";

const HOUR_MS = 3_600_000;

/** Nobody waits for the write, so it may take longer than one that a request waits for. */
const TIMEOUT_MS = 5_000;

/** The pause after a write began that did not succeed, or whose request ended before it did. */
const PAUSE_MS = 60_000;

/** The uses that wait while D1 cannot be reached. Further ones are noted by later requests. */
const MAX_WAITING = 1_000;

/**
 * Records which credentials are used, once per hour and isolate, after the request is answered. D1 writes one
 * row per credential and hour, however many isolates there are. A use that D1 did not get is written with a
 * later request, or lost if the isolate ends first.
 */
export class UseRecorder {
  readonly #env: Env;
  readonly #limits: Pick<Limits, "keyCache">;
  readonly #runtime: Runtime;
  #hourMs = 0;
  /** The credentials of this hour that were noted, the latest last. */
  readonly #noted = new Set<string>();
  readonly #waiting = new Map<string, CredentialUse>();
  /** No write begins before. */
  #pausedUntilMs = 0;

  constructor(env: Env, limits: Pick<Limits, "keyCache">, runtime: Partial<Runtime>) {
    this.#env = env;
    this.#limits = limits;
    this.#runtime = { ...defaultRuntime, ...runtime };
  }

  /** Notes that a caller got this answer. A ledger refuses the revoked keys of its cell only there (A1). */
  note(
    { keyId, role, cell, credential, expiresAtMs }: Principal,
    answer: Result<unknown>,
    waitUntil: WaitUntil,
  ): void {
    if (credential === null || (!answer.ok && answer.refusal.code === "UNAUTHENTICATED")) return;
    const nowMs = this.#runtime.clock.now();
    const usedAtMs = nowMs - (nowMs % HOUR_MS);
    if (usedAtMs !== this.#hourMs) {
      this.#hourMs = usedAtMs;
      this.#noted.clear();
    }
    if (!this.#noted.has(keyId) && this.#waiting.size < MAX_WAITING) {
      this.#noted.add(keyId);
      const [oldest] = this.#noted;
      if (this.#noted.size > this.#limits.keyCache && oldest !== undefined) this.#noted.delete(oldest);
      this.#waiting.set(keyId, { keyId, role, cell, credential, expiresAtMs, usedAtMs });
    }
    // A clock that was set back makes nothing wait for longer than the pause (M4).
    const isPaused = nowMs < this.#pausedUntilMs && nowMs >= this.#pausedUntilMs - PAUSE_MS;
    if (this.#waiting.size > 0 && !isPaused) waitUntil(this.#save(nowMs));
  }

  async #save(nowMs: number): Promise<void> {
    this.#pausedUntilMs = nowMs + PAUSE_MS;
    const database = new Database(this.#env, { timeoutMs: TIMEOUT_MS, attempts: 1 }, this.#runtime);
    while (this.#waiting.size > 0) {
      const uses = [...this.#waiting.values()];
      const saved = await saveCredentialUses(database, uses);
      if (!saved.ok) return;
      // One that was noted again meanwhile, in another hour, still waits.
      for (const use of uses) if (this.#waiting.get(use.keyId) === use) this.#waiting.delete(use.keyId);
    }
    this.#pausedUntilMs = 0;
  }
}

import type { Alarm, Clock } from "./ports.ts";

/** An alarm this much overdue is one that the platform has lost. It may be late by up to a minute after a failover. */
const LOST_AFTER_MS = 60_000;

/**
 * An object's one alarm (rule M3): always in the future, kept when it is set and early enough. A new instance first learns what is set; it
 * must not set one blindly, least of all in its constructor: that cancels the very alarm that woke it, for ever when it sleeps again
 * before the new one.
 */
export class AlarmSchedule {
  readonly #alarm: Alarm;
  readonly #clock: Clock;
  #atMs: number | undefined;

  constructor(alarm: Alarm, clock: Clock) {
    this.#alarm = alarm;
    this.#clock = clock;
  }

  /** Before `setBy` is called by an instance that no alarm woke. */
  async load(): Promise<void> {
    if (this.#atMs !== undefined) return;
    const atMs = await this.#alarm.get();
    this.#atMs ??= atMs ?? 0;
  }

  /** Makes the alarm ring by then. */
  setBy(atMs: number): void {
    const now = this.#clock.now();
    const set = this.#atMs ?? 0;
    if (set > now - LOST_AFTER_MS && set <= atMs) return;
    this.#atMs = Math.max(now + 1, atMs);
    this.#alarm.set(this.#atMs);
  }

  /** It rings: none is set any more. */
  markRung(): void {
    this.#atMs = 0;
  }
}

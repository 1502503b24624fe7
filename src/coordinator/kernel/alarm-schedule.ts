import type { Alarm, Clock } from "./ports.ts";

/**
 * An alarm that is overdue by more than this is lost. After a failover, the platform may ring up to a minute
 * late.
 */
const LOST_AFTER_MS = 60_000;

/**
 * Manages the one alarm of an object (M3). The alarm is always in the future. If the alarm that is set rings
 * early enough, it is kept. A new instance first reads which alarm is set. It must not set one without
 * reading, least of all in its constructor: that would cancel the alarm that woke the object. If the object
 * then slept again before the new alarm, this would repeat without end.
 */
export class AlarmSchedule {
  readonly #alarm: Alarm;
  readonly #clock: Clock;
  #atMs: number | undefined;

  constructor(alarm: Alarm, clock: Clock) {
    this.#alarm = alarm;
    this.#clock = clock;
  }

  /** Reads which alarm is set. An instance that no alarm woke must call this before `setBy`. */
  async load(): Promise<void> {
    if (this.#atMs !== undefined) return;
    const atMs = await this.#alarm.get();
    this.#atMs ??= atMs ?? 0;
  }

  /** Makes sure that the alarm rings at `atMs` (milliseconds since 1970) or earlier. */
  setBy(atMs: number): void {
    const now = this.#clock.now();
    const set = this.#atMs ?? 0;
    if (set > now - LOST_AFTER_MS && set <= atMs) return;
    this.#atMs = Math.max(now + 1, atMs);
    this.#alarm.set(this.#atMs);
  }

  /** Must be called when the alarm rings: from then on, no alarm is set. */
  markRung(): void {
    this.#atMs = 0;
  }
}

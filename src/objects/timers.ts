/** Deadlines that end within the same stretch share one timer. */
const SLOT_MS = 100;
/** What is shorter is a pause rather than a deadline, and ends when it says. */
const SHARED_FROM_MS = 500;

interface Slot {
  waiting: Set<() => void>;
  timer: ReturnType<typeof setTimeout>;
}

/**
 * The timers of one object. Nearly all of them are deadlines that are cancelled long before they end, several for each call: those share the
 * platform's timers, and may end up to `SLOT_MS` late. A slot that everybody has left keeps nothing awake.
 */
export class Timers {
  readonly #slots = new Map<number, Slot>();

  /** Returns what cancels it. */
  after(delayMs: number, then: () => void): () => void {
    if (delayMs >= SHARED_FROM_MS) return this.#share(Math.ceil((Date.now() + delayMs) / SLOT_MS), then);
    const timer = setTimeout(then, delayMs);
    return () => clearTimeout(timer);
  }

  #share(end: number, then: () => void): () => void {
    const slot = this.#slots.get(end) ?? this.#open(end);
    // Its own function: the same one may wait twice.
    const wake = (): void => then();
    slot.waiting.add(wake);
    return () => {
      slot.waiting.delete(wake);
      if (slot.waiting.size === 0 && this.#slots.get(end) === slot) this.#close(end, slot);
    };
  }

  #open(end: number): Slot {
    const timer = setTimeout(
      () => {
        this.#slots.delete(end);
        for (const wake of slot.waiting) wake();
      },
      Math.max(0, end * SLOT_MS - Date.now()),
    );
    const slot: Slot = { waiting: new Set(), timer };
    this.#slots.set(end, slot);
    return slot;
  }

  #close(end: number, slot: Slot): void {
    clearTimeout(slot.timer);
    this.#slots.delete(end);
  }
}

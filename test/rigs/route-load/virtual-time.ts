import type { RouterClock } from "../../../src/users/router/lookups/clock.ts";

/** Time that passes one millisecond at a time. */
export class VirtualTime implements RouterClock {
  #nowMs = 0;
  readonly #due = new Map<number, Set<() => void>>();

  now(): number {
    return this.#nowMs;
  }

  after(delayMs: number, ring: () => void): () => void {
    const atMs = this.#nowMs + Math.max(1, Math.ceil(delayMs));
    const rings = this.#due.get(atMs) ?? new Set();
    rings.add(ring);
    this.#due.set(atMs, rings);
    return () => void rings.delete(ring);
  }

  sleep(delayMs: number): Promise<void> {
    return new Promise((resume) => void this.after(delayMs, resume));
  }

  /** Lets a millisecond pass, and runs everything that is due and what promises make of it. */
  async pass(): Promise<void> {
    this.#nowMs += 1;
    const rings = this.#due.get(this.#nowMs) ?? [];
    this.#due.delete(this.#nowMs);
    for (const ring of rings) ring();
    // All microtasks run before this comes.
    await new Promise<void>((resume) => setImmediate(resume));
  }
}

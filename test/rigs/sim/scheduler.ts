import type { Random } from "./random.ts";

/** The process or instance that an event belongs to. Events of a dead owner are dropped. */
export interface Owner {
  readonly name: string;
  dead: boolean;
  /** It was replaced: it keeps running without its storage. */
  isReplaced?: boolean;
}

interface Event {
  atMs: number;
  /** Orders events with the same time at random, but in the same way in each run. */
  tie: number;
  owner: Owner | undefined;
  run: () => void;
  cancelled: boolean;
}

/**
 * Virtual time. Events run one at a time, each followed by everything that its promises cause. One event is
 * one step of a run. Nothing else advances the run, so it depends on its seed alone.
 */
export class Scheduler {
  steps = 0;
  #nowMs = 1_750_000_000_000;
  readonly #random: Random;
  readonly #heap: Event[] = [];

  constructor(random: Random) {
    this.#random = random;
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  /** Runs `run` after `delayMs`, unless its owner is dead by then. Returns a function that cancels it. */
  after(delayMs: number, owner: Owner | undefined, run: () => void): () => void {
    const event: Event = {
      atMs: this.#nowMs + Math.max(0, delayMs),
      tie: this.#random.next(),
      owner,
      run,
      cancelled: false,
    };
    push(this.#heap, event);
    return () => {
      event.cancelled = true;
    };
  }

  sleep(delayMs: number, owner: Owner | undefined): Promise<void> {
    return new Promise((resume) => void this.after(delayMs, owner, resume));
  }

  /** Lets time pass at once. All events of that time are late. */
  jump(ms: number): void {
    this.#nowMs += ms;
  }

  /** The next event and all that follows from it; false when there is none before `untilMs`. */
  async step(untilMs = Infinity): Promise<boolean> {
    for (;;) {
      const event = this.#heap[0];
      if (event === undefined || event.atMs > untilMs) return false;
      pop(this.#heap);
      if (event.cancelled || event.owner?.dead === true) continue;
      this.#nowMs = Math.max(this.#nowMs, event.atMs);
      this.steps += 1;
      event.run();
      // All microtasks run before this comes.
      await new Promise<void>((resume) => setImmediate(resume));
      return true;
    }
  }
}

const before = (a: Event, b: Event): boolean => a.atMs < b.atMs || (a.atMs === b.atMs && a.tie < b.tie);

function push(heap: Event[], event: Event): void {
  let index = heap.push(event) - 1;
  while (index > 0) {
    const parent = (index - 1) >> 1;
    const above = heap[parent];
    if (above === undefined || !before(event, above)) break;
    heap[index] = above;
    index = parent;
  }
  heap[index] = event;
}

function pop(heap: Event[]): void {
  const last = heap.pop();
  if (last === undefined || heap.length === 0) return;
  let index = 0;
  for (;;) {
    let child = 2 * index + 1;
    let least = heap[child];
    const right = heap[child + 1];
    if (least === undefined) break;
    if (right !== undefined && before(right, least)) {
      least = right;
      child += 1;
    }
    if (!before(least, last)) break;
    heap[index] = least;
    index = child;
  }
  heap[index] = last;
}

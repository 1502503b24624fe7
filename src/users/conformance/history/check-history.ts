/**
 * Searches for an order of all operations on a bucket that the register allows and that respects time: an
 * operation that was answered before another one was called comes first. The search is that of Wing and Gong,
 * with Lowe's memory of dead ends.
 *
 * Three things keep the search small without changing its result:
 * - An operation that only reads and fits now is placed now, because it changes nothing for the others.
 * - An operation with unknown outcome is placed only right before an operation that it makes possible. The
 * memory of dead ends needs no bit for it: leases only move forward, so a second use would change nothing.
 * - Applying a decision on the shard is not an operation: see `step`.
 */
import type { HistoryEvent, Operation } from "./history.ts";
import { project, type Entry, type Part, type ProjectOptions } from "./project.ts";
import {
  describeState,
  initialState,
  isState,
  stateKey,
  step,
  type Action,
  type State,
  type Taking,
} from "./register.ts";

export interface CheckOptions extends ProjectOptions {
  /** The owners before the history, by bucket. */
  initial?: Readonly<Record<string, Omit<Taking, "kind" | "bucket">>>;
  /** The number of steps after which the search of a bucket stops as undecided. */
  maxSteps?: number;
}

/**
 * `undecided`: buckets whose search was stopped. They are not known to be correct, so callers must check this
 * list.
 */
export type CheckResult =
  | { ok: true; buckets: number; operations: number; undecided: string[]; steps: number }
  | { ok: false; bucket: string; explanation: string };

const MAX_STEPS = 300_000;

export function checkHistory(events: readonly HistoryEvent[], options: CheckOptions = {}): CheckResult {
  const parts = project(events, options);
  const undecided: string[] = [];
  let steps = 0;
  for (const part of parts) {
    const search = searched(part, options);
    steps += search.steps;
    if (search.verdict === "undecided") undecided.push(part.name);
    if (search.verdict === "impossible")
      return { ok: false, bucket: part.name, explanation: explain(part, options) };
  }
  const operations = parts.reduce((sum, { entries }) => sum + entries.length, 0);
  return { ok: true, buckets: parts.length, operations, undecided, steps };
}

function searched(part: Part, { initial, maxSteps = MAX_STEPS }: CheckOptions): Search {
  const search = new Search(part);
  search.run(initialState(part.leases.length, initial?.[part.name]), maxSteps);
  return search;
}

interface Next {
  entries: number[];
  /** The earliest end of an unplaced operation. Operations that begin later must wait. */
  until: number;
}

/** Places one required operation, after the unknown ones that make it possible. */
interface Move {
  via: readonly Entry[];
  index: number;
  entry: Entry;
  after: State;
}

/** A node of the search: everything placed so far, and the moves still to try. */
interface SearchNode {
  key: string;
  move: Move | undefined;
  absorbed: readonly number[];
  moves: Generator<Move, void>;
}

class Search {
  verdict: "possible" | "impossible" | "undecided" = "undecided";
  steps = 0;
  /** The longest order found so far, and its state. */
  best: { order: Entry[]; state: State } | undefined;
  readonly #required: readonly Entry[];
  readonly #optional: readonly Entry[];
  readonly #placed: Uint8Array;
  readonly #order: Entry[] = [];
  readonly #path: SearchNode[] = [];
  readonly #deadEnds = new Set<string>();
  #first = 0;
  #left: number;

  constructor({ entries }: Part) {
    this.#required = entries.filter(({ optional }) => !optional);
    this.#optional = entries.filter(({ optional }) => optional);
    this.#left = this.#required.length;
    this.#placed = new Uint8Array(this.#required.length);
  }

  run(state: State, maxSteps: number): void {
    this.#enter(state, undefined);
    while (this.#left > 0 && this.steps <= maxSteps) {
      const node = this.#path.at(-1);
      if (node === undefined) {
        this.verdict = "impossible";
        return;
      }
      const { value: move } = node.moves.next();
      if (move === undefined) {
        this.#deadEnds.add(node.key);
        this.#leave(node);
        this.#path.pop();
      } else {
        this.#order.push(...move.via);
        this.#do(move.index, move.entry);
        this.#enter(move.after, move);
      }
    }
    if (this.#left === 0) this.verdict = "possible";
  }

  /** The operations that may follow the best order, for explanations. */
  waiting(): Entry[] {
    const placed = new Set(this.best?.order);
    const open = this.#required.filter((entry) => !placed.has(entry));
    const until = Math.min(...open.map(({ to }) => to));
    return open.filter(({ from }) => from <= until);
  }

  #enter(state: State, move: Move | undefined): void {
    const absorbed = this.#absorb(state);
    if (this.#left === 0) return;
    if (this.best === undefined || this.#order.length > this.best.order.length)
      this.best = { order: [...this.#order], state };
    const node: SearchNode = { key: this.#key(state), move, absorbed, moves: this.#moves(state) };
    if (this.#deadEnds.has(node.key)) this.#leave(node);
    else this.#path.push(node);
  }

  #leave({ move, absorbed }: SearchNode): void {
    for (const index of absorbed.toReversed()) this.#undo(index);
    if (move === undefined) return;
    this.#undo(move.index);
    this.#order.length -= move.via.length;
  }

  /** Places operations that fit and change nothing, as long as there are any. */
  #absorb(state: State): number[] {
    const absorbed: number[] = [];
    for (let before = -1; before < absorbed.length;) {
      before = absorbed.length;
      for (const index of this.#next().entries) {
        const entry = this.#required[index];
        this.steps += 1;
        if (entry === undefined || !entry.ways.some((way) => step(state, way) === state)) continue;
        this.#do(index, entry);
        absorbed.push(index);
      }
    }
    return absorbed;
  }

  *#moves(state: State): Generator<Move, void> {
    const next = this.#next();
    yield* this.#direct(state, next, [], undefined);
    yield* this.#viaUnknown(state, next);
  }

  /** Moves that place an operation directly. `before`: a state in which it must not have been possible. */
  *#direct(
    state: State,
    { entries }: Next,
    via: readonly Entry[],
    before: State | undefined,
  ): Generator<Move, void> {
    for (const index of entries) {
      const entry = this.#required[index];
      for (const way of entry?.ways ?? []) {
        this.steps += 1;
        const after = step(state, way);
        if (entry === undefined || !isState(after) || (before !== undefined && isState(step(before, way))))
          continue;
        yield { via, index, entry, after };
      }
    }
  }

  /** Moves from all states that operations with unknown outcome can lead to, nearest first. */
  *#viaUnknown(state: State, next: Next): Generator<Move, void> {
    const started = this.#optional.filter(({ from }) => from <= next.until);
    if (started.length === 0) return;
    const asked = new Set(next.entries.flatMap((index) => this.#required[index]?.ways.map(leaseOf) ?? []));
    const seen = new Set([stateKey(state)]);
    const queue: { state: State; via: Entry[]; begun: number[] }[] = [{ state, via: [], begun: [] }];
    for (let node = queue.shift(); node !== undefined; node = queue.shift()) {
      for (const [entry, way] of started.flatMap((each) => each.ways.map((one) => [each, one] as const))) {
        this.steps += 1;
        const after = step(node.state, way);
        if (!isState(after) || !isUseful(node.state, after, way, asked, node.begun)) continue;
        const key = stateKey(after);
        if (seen.has(key)) continue;
        seen.add(key);
        const via = [...node.via, entry];
        queue.push({
          state: after,
          via,
          begun: way.kind === "begun" ? [...node.begun, way.lease] : node.begun,
        });
        yield* this.#direct(after, next, via, node.state);
      }
    }
  }

  /**
   * The operations that may come next: those that began before any unplaced one ended, ordered by their end.
   */
  #next(): Next {
    const entries: number[] = [];
    let until = Infinity;
    for (let index = this.#first; index < this.#required.length; index += 1) {
      const entry = this.#required[index];
      if (this.#placed[index] === 1 || entry === undefined) continue;
      if (entry.from > until) break;
      entries.push(index);
      until = Math.min(until, entry.to);
    }
    const end = (index: number): number => this.#required[index]?.to ?? 0;
    return { entries: entries.toSorted((a, b) => end(a) - end(b)), until };
  }

  #do(index: number, entry: Entry): void {
    this.#placed[index] = 1;
    this.#left -= 1;
    this.#order.push(entry);
    while (this.#placed[this.#first] === 1) this.#first += 1;
  }

  #undo(index: number): void {
    this.#placed[index] = 0;
    this.#left += 1;
    this.#order.pop();
    this.#first = Math.min(this.#first, index);
  }

  /** The key of a node: the first unplaced operation, the placed ones after it, and the state. */
  #key(state: State): string {
    let key = `${this.#first}`;
    for (
      let index = this.#first + 1, left = this.#required.length - this.#left - this.#first;
      left > 0;
      index += 1
    ) {
      if (this.#placed[index] !== 1) continue;
      key += `,${index}`;
      left -= 1;
    }
    return `${key}|${stateKey(state)}`;
  }
}

const leaseOf = (action: Action): number => ("lease" in action ? action.lease : -1);

/**
 * Whether placing an unknown operation can make another one possible. `begun`: leases that were begun on the
 * way without anything that shows it.
 */
function isUseful(
  state: State,
  after: State,
  way: Action,
  asked: ReadonlySet<number>,
  begun: readonly number[],
): boolean {
  if (after === state) return false;
  // A lease that is begun and rolled back unseen has no effect.
  if (way.kind === "decided" && way.outcome === "ROLLED_BACK" && begun.includes(way.lease)) return false;
  // A change of a lease that neither takes nor frees the bucket matters only to answers about that lease.
  return after.hold !== state.hold || after.claim !== state.claim || asked.has(leaseOf(way));
}

/** The part as it was known at `end`. Calls that were answered later count as unanswered. */
function cut({ name, leases, entries }: Part, end: number): Part {
  const known = entries.filter(({ operation }) => operation.invokedAt <= end);
  const kept = known.flatMap((entry): Entry[] => {
    if (entry.operation.answeredAt <= end) return [entry];
    const ways = entry.ways.filter(({ kind }) => kind === "begun" || kind === "decided");
    return ways.length === 0 ? [] : [{ ...entry, optional: true, to: Infinity, ways }];
  });
  return { name, leases, entries: kept };
}

/** The shortest prefix of the history that is impossible. Its last answer is the interesting one. */
function shortest(part: Part, options: CheckOptions): Part {
  const ends = [
    ...new Set(part.entries.map(({ operation }) => operation.answeredAt).filter((at) => at !== Infinity)),
  ].toSorted((a, b) => a - b);
  let low = 0;
  let high = ends.length - 1;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (searched(cut(part, ends[middle] ?? Infinity), options).verdict === "impossible") high = middle;
    else low = middle + 1;
  }
  const result = cut(part, ends[high] ?? Infinity);
  return searched(result, options).verdict === "impossible" ? result : part;
}

/** The number of lines in the lists of an explanation. */
const SHOWN = 10;

function explain(whole: Part, options: CheckOptions): string {
  const part = shortest(whole, options);
  const search = searched(part, options);
  const { order, state } = search.best ?? {
    order: [],
    state: initialState(part.leases.length, options.initial?.[part.name]),
  };
  const last = part.entries.filter(({ optional }) => !optional).reduce((a, b) => (b.to > a.to ? b : a));
  const waiting = search.waiting();
  const around = part.entries.filter(
    ({ from, to }) => to >= Math.min(...waiting.map((entry) => entry.from)) && from <= last.to,
  );
  return [
    `No order of the operations on ${part.name} explains all answers. ` +
      `Everything up to then can be explained, but not this one:`,
    `  ${describe(last.operation)}`,
    `The longest order that can be explained (${order.length} of ` +
      `${part.entries.length}${order.length > SHOWN ? `, the last ${SHOWN}` : ""}):`,
    ...order.slice(-SHOWN).map(({ operation }) => `  ${describe(operation)}`),
    `after which the bucket is: ${describeState(state, part.leases)}`,
    "What would have to come next, and why it cannot:",
    ...waiting.flatMap((entry) =>
      entry.ways.map((way) => `  ${describe(entry.operation)}: ${reasonOf(step(state, way))}`),
    ),
    "Everything that was under way at that time:",
    ...[...new Set(around.map(({ operation }) => operation))]
      .slice(-3 * SHOWN)
      .map((operation) => `  ${describe(operation)}`),
  ].join("\n");
}

const reasonOf = (result: ReturnType<typeof step>): string =>
  isState(result) ? "possible, but then nothing explains the rest" : result;

/** Describes one operation in one line. */
function describe({ id, client, call, answer, invokedAt, answeredAt }: Operation): string {
  const when = `[${invokedAt}–${answeredAt === Infinity ? "" : answeredAt}]`;
  return `${when} ${id} ${client}: ${describeCall(call)} → ${describeAnswer(answer)}`;
}

function describeCall(call: Operation["call"]): string {
  if (call.kind === "lookup") return `lookup ${call.buckets.join(" ")}`;
  const lease = `${call.cell}/${call.lease}`;
  if (call.kind === "decide") return `${call.outcome === "COMMITTED" ? "commit" : "rollback"} ${lease}`;
  if (call.kind === "get") return `get ${lease}`;
  return `begin ${lease} (${call.ops.map(({ kind, bucket }) => `${kind} ${bucket}`).join(", ")})`;
}

function describeAnswer(answer: Operation["answer"]): string {
  if (answer.kind === "unknown") return "unknown";
  const { kind, ...more } = answer;
  return Object.keys(more).length === 0 ? kind : `${kind} ${JSON.stringify(more)}`;
}

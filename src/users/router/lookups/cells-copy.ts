import { callHook, type RouterHooks } from "../hooks.ts";
import { originOf, RoutesUnavailableError, type CellAddress } from "./routes.ts";
import { answerOf, type Source } from "./source.ts";

interface Copy {
  cells: ReadonlyMap<string, CellAddress>;
  /** When the coordinator was asked. */
  askedMs: number;
  /** The list was true at a moment not before this one: the coordinator answers from a copy of its own. */
  sinceMs: number;
}

export interface CellsCopyOptions {
  source: Source;
  now: () => number;
  graceMs: number;
  /** After this time, a refresh is taken for lost, and another one may start. */
  refreshTimeoutMs: number;
  hooks: RouterHooks;
}

/** A copy that was asked for longer ago is refreshed, and doesn't prove that a cell doesn't exist (Q8). */
const MAX_AGE_MS = 15_000;
/** Neither does one from a coordinator whose own copy is older than 30 s: it cannot read its directory. */
const MAX_PROOF_AGE_MS = MAX_AGE_MS + 30_000;
const RETRY_AFTER_MS = 1_000;

/** A copy of the list of cells. Lookups that need it refresh it. */
export class CellsCopy {
  readonly #options: CellsCopyOptions;
  #copy: Copy | undefined;
  #refresh: { work: Promise<void>; startedMs: number } | undefined;
  #failedAtMs = -Infinity;
  /** When the last refresh began. */
  #startedMs = -Infinity;
  /** Counts how often the copy was cleared. */
  #era = 0;

  constructor(options: CellsCopyOptions) {
    this.#options = options;
  }

  /** The copy, however old it is. */
  get newest(): Copy | undefined {
    return this.#copy;
  }

  isDue(nowMs: number): boolean {
    return (
      nowMs - (this.#copy?.askedMs ?? -Infinity) > MAX_AGE_MS && nowMs - this.#failedAtMs >= RETRY_AFTER_MS
    );
  }

  /** Whether the copy may be refreshed early, because a cell seems to have moved. */
  mayRefresh(nowMs: number): boolean {
    return nowMs - this.#startedMs >= RETRY_AFTER_MS;
  }

  /** Refreshes the copy, or joins the refresh that is under way. */
  refresh(): Promise<void> {
    const nowMs = this.#options.now();
    // The promise of a refresh never settles if the request that started it was cancelled.
    if (this.#refresh !== undefined && nowMs - this.#refresh.startedMs < this.#options.refreshTimeoutMs)
      return this.#refresh.work;
    const refresh = { work: Promise.resolve(), startedMs: nowMs };
    this.#refresh = refresh;
    this.#startedMs = nowMs;
    refresh.work = this.#read(nowMs).finally(() => {
      if (this.#refresh === refresh) this.#refresh = undefined;
    });
    return refresh.work;
  }

  /** How long ago a copy may have been asked for. */
  maxAgeMs(mustBeNew: boolean): number {
    return mustBeNew ? MAX_AGE_MS : Math.max(MAX_AGE_MS, this.#options.graceMs);
  }

  /** @throws `RoutesUnavailableError` when the copy is too old, or was never read. */
  usable(mustBeNew: boolean): ReadonlyMap<string, CellAddress> {
    const nowMs = this.#options.now();
    const copy = this.#copy;
    const isUsable =
      copy !== undefined &&
      nowMs - copy.askedMs <= this.maxAgeMs(mustBeNew) &&
      (!mustBeNew || nowMs - copy.sinceMs <= MAX_PROOF_AGE_MS);
    if (isUsable) return copy.cells;
    throw new RoutesUnavailableError("the list of cells could not be read", RETRY_AFTER_MS);
  }

  /** Drops everything. A refresh that is under way has no effect any more. */
  clear(): void {
    this.#era += 1;
    this.#copy = undefined;
    this.#refresh = undefined;
    this.#failedAtMs = -Infinity;
    this.#startedMs = -Infinity;
  }

  async #read(sentMs: number): Promise<void> {
    const { source, now, hooks } = this.#options;
    const era = this.#era;
    const list = await answerOf(source.cells());
    const nowMs = now();
    // If the clock was set back meanwhile, the age of the list is unknown.
    if (era !== this.#era) return;
    if (list.kind === "failed") {
      this.#failedAtMs = nowMs;
      const { detail, status } = list;
      callHook(hooks.onFailure, {
        operation: "cells",
        detail,
        ...(status === undefined ? {} : { status }),
      });
      return;
    }
    const askedMs = sentMs - list.ageMs;
    const sinceMs = askedMs - list.copyAgeMs;
    const known = this.#copy;
    if (known !== undefined && sinceMs < known.sinceMs) {
      // An older list must not take new addresses back.
      known.askedMs = Math.max(known.askedMs, askedMs);
      return;
    }
    for (const { id, address } of list.cells)
      if (originOf(address) === undefined) callHook(hooks.onUnusableAddress, { cell: id });
    this.#copy = { cells: new Map(list.cells.map((cell) => [cell.id, cell])), askedMs, sinceMs };
  }
}

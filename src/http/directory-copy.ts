import type { Cell, Snapshot } from "../core/directory/directory.ts";
import type { Limits } from "../core/limits.ts";
import type { Envelope } from "../core/messages.ts";
import { ok, refused, type Result } from "../core/refusal.ts";
import type { Objects } from "../objects/objects.ts";
import type { WallClock } from "../runtime.ts";
import { reach, readTimeoutMs } from "./reach.ts";

/**
 * After a failed refresh, the old copy serves for this long before the next try. Otherwise every request
 * would wait for an unreachable directory.
 */
const RETRY_AFTER_MS = 1_000;

/** The parts of a snapshot that requests need, indexed. */
export interface DirectoryView {
  cells: ReadonlyMap<string, Cell>;
  revokedKeys: ReadonlySet<string>;
}

interface Refresh {
  startedMs: number;
  result: Promise<Result<DirectoryView>>;
}

/**
 * An isolate's copy of the directory, at most `directoryCacheMs` old. Only one refresh runs at a time. If the
 * directory cannot be read, the last copy continues to serve; without one, the request is refused.
 */
export class DirectoryCopy {
  readonly #objects: Objects;
  readonly #limits: Limits;
  readonly #envelope: Envelope;
  readonly #clock: WallClock;
  #view: DirectoryView | undefined;
  #freshUntilMs = 0;
  #refresh: Refresh | undefined;

  constructor(objects: Objects, limits: Limits, envelope: Envelope, clock: WallClock) {
    this.#objects = objects;
    this.#limits = limits;
    this.#envelope = envelope;
    this.#clock = clock;
  }

  async view(): Promise<Result<DirectoryView>> {
    const now = this.#clock.now();
    if (this.#view !== undefined && now < this.#freshUntilMs) return ok(this.#view);
    const refreshed = await this.#shared(now);
    if (refreshed.ok || this.#view === undefined) return refreshed;
    this.#freshUntilMs = Math.max(
      this.#freshUntilMs,
      this.#clock.now() + Math.min(RETRY_AFTER_MS, this.#limits.directoryCacheMs),
    );
    return ok(this.#view);
  }

  /** Reads the directory itself, for answers that must not come from a copy. */
  async read(): Promise<Result<DirectoryView>> {
    const snapshot = await reach(readTimeoutMs(this.#limits), { name: "the directory" }, () =>
      this.#objects.directory().snapshot(this.#envelope),
    );
    return snapshot.ok ? ok(viewOf(snapshot.value)) : snapshot;
  }

  /**
   * A registered cell. If the copy doesn't have it, it may have been registered a moment ago by another
   * isolate, so the directory is read.
   */
  async cell(id: string): Promise<Result<Cell>> {
    const view = await this.view();
    return view.ok && !view.value.cells.has(id) ? this.presentCell(id) : cellIn(view, id);
  }

  /** The cell as the directory has it now, for decisions that depend on its state. */
  async presentCell(id: string): Promise<Result<Cell>> {
    return cellIn(await this.read(), id);
  }

  /**
   * Call this after a change made by this isolate: the next request then reads the directory. The old copy
   * remains in case that fails.
   */
  expire(): void {
    this.#freshUntilMs = 0;
    this.#refresh = undefined;
  }

  /**
   * Shares one refresh between requests. A promise that belongs to another request never resolves if that
   * request is cancelled, so each request waits with its own timer, and a refresh that takes too long is
   * started again.
   */
  async #shared(nowMs: number): Promise<Result<DirectoryView>> {
    const timeoutMs = readTimeoutMs(this.#limits);
    const running = this.#refresh;
    if (running === undefined || nowMs - running.startedMs > timeoutMs) return this.#start(nowMs);
    return reach(timeoutMs, { name: "the directory" }, () => running.result);
  }

  #start(startedMs: number): Promise<Result<DirectoryView>> {
    const refresh: Refresh = { startedMs, result: this.read() };
    this.#refresh = refresh;
    return refresh.result.then((result) => {
      // If `expire` was called since, this snapshot may lack the change, so it is not kept.
      if (this.#refresh !== refresh) return result;
      this.#refresh = undefined;
      if (result.ok) {
        this.#view = result.value;
        this.#freshUntilMs = startedMs + this.#limits.directoryCacheMs;
      }
      return result;
    });
  }
}

function cellIn(view: Result<DirectoryView>, id: string): Result<Cell> {
  if (!view.ok) return view;
  const cell = view.value.cells.get(id);
  return cell === undefined
    ? refused("NOT_FOUND", `cell ${id} is not registered; an operator must register it first`, {
        reason: "CELL_UNKNOWN",
      })
    : ok(cell);
}

const viewOf = ({ cells, revokedKeys }: Snapshot): DirectoryView => ({
  cells: new Map(cells.map((cell) => [cell.cell, cell])),
  revokedKeys: new Set(revokedKeys),
});

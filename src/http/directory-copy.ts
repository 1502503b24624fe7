import type { Cell, Snapshot } from "../core/directory/directory.ts";
import type { Limits } from "../core/limits.ts";
import type { Envelope } from "../core/messages.ts";
import { ok, refused, type Result } from "../core/refusal.ts";
import type { Objects } from "../objects/objects.ts";
import type { WallClock } from "../runtime.ts";
import { reach, readTimeoutMs } from "./reach.ts";

/** After a failed refresh the old copy serves this long before the next try, so that requests do not all wait for a directory that is down. */
const RETRY_AFTER_MS = 1_000;

/** What requests need of a snapshot, ready to be asked. */
export interface DirectoryView {
  cells: ReadonlyMap<string, Cell>;
  revokedKeys: ReadonlySet<string>;
}

interface Refresh {
  startedMs: number;
  result: Promise<Result<DirectoryView>>;
}

/**
 * An isolate's copy of the directory, at most `directoryCacheMs` old. One refresh is under way at a time. When the directory cannot be read
 * the last good copy goes on serving; without one the answer is a refusal, never a guess.
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

  /** The present, for what must not be answered from a copy. */
  async read(): Promise<Result<DirectoryView>> {
    const snapshot = await reach(readTimeoutMs(this.#limits), { name: "the directory" }, () =>
      this.#objects.directory().snapshot(this.#envelope),
    );
    return snapshot.ok ? ok(viewOf(snapshot.value)) : snapshot;
  }

  /** A registered cell. One that the copy lacks may have been registered a moment ago, and elsewhere. */
  async cell(id: string): Promise<Result<Cell>> {
    const view = await this.view();
    return view.ok && !view.value.cells.has(id) ? this.presentCell(id) : cellIn(view, id);
  }

  /** The cell as it is now, for what is decided on that. */
  async presentCell(id: string): Promise<Result<Cell>> {
    return cellIn(await this.read(), id);
  }

  /** After a change that was made here: the next request reads the directory. The old copy stays for when it cannot. */
  expire(): void {
    this.#freshUntilMs = 0;
    this.#refresh = undefined;
  }

  /**
   * A promise of another request is not to be relied upon: it never resolves when that request is cancelled. So everybody waits on a timer
   * of their own, and a refresh that has taken too long counts as gone.
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
      // Otherwise a change was made meanwhile that this snapshot may not have.
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
    ? refused("NOT_FOUND", `cell ${id} is not registered`, { reason: "CELL_UNKNOWN" })
    : ok(cell);
}

const viewOf = ({ cells, revokedKeys }: Snapshot): DirectoryView => ({
  cells: new Map(cells.map((cell) => [cell.cell, cell])),
  revokedKeys: new Set(revokedKeys),
});

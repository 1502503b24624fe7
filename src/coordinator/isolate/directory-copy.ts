import { ask } from "../kernel/ask.ts";
import type { Cell, Snapshot } from "../kernel/directory/messages.ts";
import type { Growth } from "../capabilities/growth/messages.ts";
import { noIdentities, type IdentitySet } from "../capabilities/identities/identities.ts";
import type { Limits } from "../../common/limits.ts";
import type { Envelope } from "../kernel/messages.ts";
import { ok, refused, type Refusal, type Result } from "../kernel/refusal.ts";
import type { KnownPlacement } from "./known-placement.ts";
import type { Objects } from "../objects/objects.ts";
import { wallClock, type WaitUntil, type WallClock } from "../runtime.ts";
import { AgeClock, type Moment } from "./recent-answer.ts";
import { DIRECTORY, reach, readTimeoutMs } from "./reach.ts";
import type { TypesCopy } from "../capabilities/types/edge/types-copy.ts";

/**
 * After a failed refresh, the old copy serves for this long before the next try. Otherwise an unreachable
 * directory would get a message per request.
 */
const RETRY_AFTER_MS = 1_000;

/**
 * How old the copy may be that says what doesn't exist. Clients of a router can name any cell, so this also
 * limits how often an isolate reads the directory for them.
 */
const ABSENCE_MS = 1_000;

/** How long a request waits for the refresh of another request before it starts its own. */
const PATIENCE_MS = 250;

/** The copy is refreshed in the background once it has reached this share of its greatest age. */
const EARLY = 0.5;

/** The parts of a deployment that the copy needs. */
interface ReadDeployment {
  objects: Pick<Objects, "directory">;
  config: { limits: Limits };
  placement: KnownPlacement;
  envelope: Envelope;
}

/** The parts of a snapshot that requests need, indexed. */
export interface DirectoryView {
  /** The cells that are not removed. */
  cells: ReadonlyMap<string, Cell>;
  /** The cells that were removed (X5). */
  removedCells: ReadonlyMap<string, Cell>;
  revokedKeys: ReadonlySet<string>;
  /** Keys that expire no later are refused, because the directory may have left them out (A1). */
  revokedThroughMs: number;
  /** Whether a placement is fixed (P2). */
  isPlaced: boolean;
  /** The growth that runs. Null: none. */
  growth: Growth | null;
  /** What certificates and tokens are accepted (A4). */
  identities: IdentitySet;
}

interface Copy {
  view: DirectoryView;
  /** When its reading began. */
  readAt: Moment;
}

interface Loss {
  refusal: Refusal;
  /** The number of readings that had been started when the directory said so. */
  readings: number;
  toldAt: Moment;
}

interface Refresh {
  startedAt: Moment;
  result: Promise<Result<DirectoryView>>;
}

interface RecentView {
  view: DirectoryView;
  /** Whether the directory was read after the request had come. */
  isNew: boolean;
}

/**
 * An isolate's copy of the directory, at most `directoryCacheMs` old. It is refreshed in the background
 * before it is too old, so nearly all requests find a copy that serves. If the directory cannot be read, the
 * last copy continues to serve; without one, the request is refused. A directory that has gone back in time
 * may have lost revocations before it noticed, so no copy serves from then on (H8).
 */
export class DirectoryCopy {
  readonly #deployment: ReadDeployment;
  readonly #limits: Limits;
  readonly #ages: AgeClock;
  readonly #types: TypesCopy;
  #copy: Copy | undefined;
  /** True after `expire`: the copy only serves if the directory cannot be read. */
  #isExpired = false;
  #failedAt: Moment | undefined;
  /** What the directory has said of its loss, until a later reading succeeds (H8). */
  #loss: Loss | undefined;
  /** The number of readings that were started. */
  #readings = 0;
  #refresh: Refresh | undefined;
  /** Those that were read last. The directory sends them only after a change. */
  #identities: IdentitySet | undefined;
  /** Grows with each call of `expire`. */
  #changes = 0;

  constructor(deployment: ReadDeployment, clock: WallClock, types: TypesCopy) {
    this.#deployment = deployment;
    this.#limits = deployment.config.limits;
    this.#ages = new AgeClock(clock);
    this.#types = types;
  }

  async view(waitUntil: WaitUntil): Promise<Result<DirectoryView>> {
    if (this.#loss !== undefined && this.#ages.ageMs(this.#loss.toldAt) < RETRY_AFTER_MS)
      return { ok: false, refusal: this.#loss.refusal };
    const copy = this.#copy;
    if (copy === undefined) return this.#refreshed(waitUntil);
    const failedMs = this.#failedAt === undefined ? undefined : this.#ages.ageMs(this.#failedAt);
    const { directoryCacheMs } = this.#limits;
    const ageMs = this.#isExpired ? Number.POSITIVE_INFINITY : this.#ages.ageMs(copy.readAt);
    const failsMs = Math.min(directoryCacheMs, RETRY_AFTER_MS + readTimeoutMs(this.#limits));
    if (ageMs < directoryCacheMs || (failedMs !== undefined && failedMs < failsMs)) {
      const isDue = failedMs === undefined ? ageMs >= EARLY * directoryCacheMs : failedMs >= RETRY_AFTER_MS;
      if (isDue && !this.#isRefreshing()) void this.#start(waitUntil);
      return ok(copy.view);
    }
    const refreshed = await this.#refreshed(waitUntil);
    // The copy may have been dropped during the wait (M1).
    const kept = this.#copy;
    return refreshed.ok || kept === undefined ? refreshed : ok(kept.view);
  }

  /**
   * The same as `view`, with its age in milliseconds, for callers who must know what an outage makes of it.
   * Infinity if the age is unknown.
   */
  async agedView(waitUntil: WaitUntil): Promise<Result<{ view: DirectoryView; ageMs: number }>> {
    const view = await this.view(waitUntil);
    if (!view.ok) return view;
    const copy = this.#copy;
    // A view that is not kept was read by a refresh, for which a call waits no longer.
    const ageMs = copy?.view === view.value ? this.#ages.ageMs(copy.readAt) : 2 * readTimeoutMs(this.#limits);
    return ok({ view: view.value, ageMs });
  }

  /** Reads the directory itself, for answers that must not come from a copy. */
  async read(): Promise<Result<DirectoryView>> {
    this.#readings += 1;
    const reading = this.#readings;
    const known = this.#identities;
    const snapshot = await this.#snapshot(known);
    if (snapshot.ok) {
      // Until a placement is fixed, the directory only repeats what it was sent (P2).
      if (snapshot.value.isPlaced) this.#deployment.placement.learn(snapshot.value.placement);
      if (snapshot.value.types !== null) this.#types.take(snapshot.value.types);
      if (this.#isAfterLoss(reading)) this.#loss = undefined;
      const identities = snapshot.value.identities ?? known ?? noIdentities;
      this.#identities = identities;
      return ok(viewOf(snapshot.value, identities));
    }
    if (snapshot.refusal.reason === "HISTORY_LOST") this.lose(snapshot.refusal);
    return snapshot;
  }

  /** A directory that has another placement refuses the question, and says which one. */
  async #snapshot(known: IdentitySet | undefined): Promise<Result<Snapshot>> {
    const { objects, placement } = this.#deployment;
    const send = (envelope: Envelope): Promise<Result<Snapshot>> =>
      reach(readTimeoutMs(this.#limits), { name: DIRECTORY }, () =>
        objects.directory().snapshot({
          ...envelope,
          ...positionOf(this.#types),
          ...(known === undefined ? {} : { identitiesPosition: known.position }),
        }),
      );
    const sent = this.#deployment.envelope;
    const snapshot = await send(sent);
    const isOutdated =
      !snapshot.ok &&
      snapshot.refusal.reason === "PLACEMENT_MISMATCH" &&
      placement.current !== sent.placement;
    return isOutdated ? send(this.#deployment.envelope) : snapshot;
  }

  /**
   * Call this when the directory says that it has gone back in time. Its copy may be from after the loss, so
   * it serves no more (H8).
   */
  lose(refusal: Refusal): void {
    this.#loss = { refusal, readings: this.#readings, toldAt: this.#ages.now() };
    this.#copy = undefined;
  }

  /** Whether a reading was started after the directory has last said that it is lost. */
  #isAfterLoss(reading: number): boolean {
    return this.#loss === undefined || reading > this.#loss.readings;
  }

  /**
   * A cell, also a removed one. If the copy doesn't have it, it may have been registered a moment ago by
   * another isolate, so the directory is read.
   */
  async cell(id: string, waitUntil: WaitUntil): Promise<Result<Cell>> {
    const view = await this.view(waitUntil);
    const cell = cellIn(view, id);
    return view.ok && !cell.ok ? this.presentCell(id) : cell;
  }

  /**
   * Whether the copy has a cell as removed (X5). A removal is final, so what an old copy says of it is true.
   * It reads nothing, because a cell's own calls do not need the directory.
   */
  isKnownAsRemoved(id: string): boolean {
    return this.#copy?.view.removedCells.has(id) === true;
  }

  /** Whether the copy has a key as revoked. A revocation is final, too, and it reads nothing either. */
  isKnownAsRevoked(keyId: string): boolean {
    return this.#copy?.view.revokedKeys.has(keyId) === true;
  }

  /**
   * The directory as it was at most a second ago, for answers that something doesn't exist. Refused if it
   * cannot be read.
   */
  async recentView(waitUntil: WaitUntil): Promise<Result<RecentView>> {
    const isRecent = (moment: Moment | undefined): boolean =>
      moment !== undefined && this.#ages.ageMs(moment) < ABSENCE_MS;
    if (this.#loss !== undefined && isRecent(this.#loss.toldAt))
      return { ok: false, refusal: this.#loss.refusal };
    if (this.#copy !== undefined && !this.#isExpired && isRecent(this.#copy.readAt))
      return ok({ view: this.#copy.view, isNew: false });
    if (isRecent(this.#failedAt)) return unreadable;
    const isShared = isRecent(this.#refresh?.startedAt);
    const view = await (isShared ? this.#refreshed(waitUntil) : this.#start(waitUntil));
    return view.ok ? ok({ view: view.value, isNew: !isShared }) : view;
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
    this.#isExpired = true;
    this.#changes += 1;
    this.#failedAt = undefined;
    this.#refresh = undefined;
    this.#loss = undefined;
  }

  /**
   * Waits for a refresh, which requests share. A promise that belongs to another request never resolves if
   * that request is cancelled and the runtime drops its work in spite of `waitUntil`. So each request waits
   * with its own timer, and only briefly before it starts a refresh of its own.
   */
  async #refreshed(waitUntil: WaitUntil): Promise<Result<DirectoryView>> {
    const running = this.#refresh;
    if (running === undefined || !this.#isRefreshing()) return this.#start(waitUntil);
    const answer = await ask(wallClock, PATIENCE_MS, () => running.result);
    if (answer.kind === "ok") return ok(answer.value);
    if (answer.kind === "refused") return { ok: false, refusal: answer.refusal };
    const next = this.#refresh;
    if (next === undefined || next === running) return this.#start(waitUntil);
    return reach(readTimeoutMs(this.#limits), { name: DIRECTORY }, () => next.result);
  }

  /** False if the refresh has taken so long that it was lost. */
  #isRefreshing(): boolean {
    return (
      this.#refresh !== undefined && this.#ages.ageMs(this.#refresh.startedAt) <= readTimeoutMs(this.#limits)
    );
  }

  #start(waitUntil: WaitUntil): Promise<Result<DirectoryView>> {
    const startedAt = this.#ages.now();
    const changes = this.#changes;
    const refresh: Refresh = { startedAt, result: this.read() };
    const reading = this.#readings;
    this.#refresh = refresh;
    const kept = refresh.result.then((result) => {
      // If `expire` was called since, this snapshot may lack the change, so it is not kept.
      if (this.#changes !== changes) return result;
      if (this.#refresh === refresh) this.#refresh = undefined;
      if (result.ok && this.#isAfterLoss(reading)) {
        this.#copy = { view: result.value, readAt: startedAt };
        this.#isExpired = false;
      }
      this.#failedAt = result.ok ? undefined : this.#ages.now();
      return result;
    });
    waitUntil(kept);
    return kept;
  }
}

const unreadable = refused("UNAVAILABLE", `${DIRECTORY} cannot be reached`, { retryAfterMs: RETRY_AFTER_MS });

/** The cell in a view, also a removed one. */
export function cellIn(view: Result<DirectoryView>, id: string): Result<Cell> {
  if (!view.ok) return view;
  const cell = view.value.cells.get(id) ?? view.value.removedCells.get(id);
  return cell === undefined
    ? refused("NOT_FOUND", `cell ${id} is not registered; an operator must register it first`, {
        reason: "CELL_UNKNOWN",
      })
    : ok(cell);
}

const viewOf = (
  { cells, revokedKeys, revokedThroughMs, isPlaced, growth }: Snapshot,
  identities: IdentitySet,
): DirectoryView => ({
  cells: new Map(cells.flatMap((cell) => (cell.removedAtMs === null ? [[cell.cell, cell]] : []))),
  removedCells: new Map(cells.flatMap((cell) => (cell.removedAtMs === null ? [] : [[cell.cell, cell]]))),
  revokedKeys: new Set(revokedKeys),
  revokedThroughMs,
  isPlaced,
  growth,
  identities,
});

const positionOf = ({ position }: TypesCopy): { typesPosition?: number } =>
  position === undefined ? {} : { typesPosition: position };

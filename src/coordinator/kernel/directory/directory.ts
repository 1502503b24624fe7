import type { Limits } from "../../../common/limits.ts";
import type { Envelope, Told } from "../messages.ts";
import type { Tables } from "../tables.ts";
import type { Ports } from "../ports.ts";
import { ok, refused, type Result } from "../refusal.ts";
import type { Confirmed, Snapshot, SnapshotRequest } from "./messages.ts";
import type { DirectoryCalls } from "../methods.ts";
import { addHalves, withFields, type Halves } from "../half.ts";
import type { Handlers, Method } from "../method.ts";
import { directoryMethods } from "../methods.ts";
import { defineServed, type Checked, type Work } from "../serve.ts";
import { hasFewerShards, pointOfRows, refusalOf, refusePlacement } from "./checks.ts";
import type { DirectoryMetrics } from "../metrics/messages.ts";
import type { DirectoryHooks } from "./hooks.ts";
import { makePart, type DirectoryPart } from "./part.ts";

/**
 * Stores what must never differ between machines: the placement, the cells and the keys. A begin, commit or
 * rollback does not need it, except at the first use of a ledger or shard.
 */
// The constructor defines the methods.
// oxlint-disable-next-line typescript/no-unsafe-declaration-merging
export class Directory {
  readonly #part: DirectoryPart;

  /** @param halves - what capabilities add, by their names */
  constructor(ports: Ports, limits: Limits, halves: Halves<DirectoryPart, DirectoryHooks>) {
    const part = makePart(ports, limits, halves);
    this.#part = part;
    const checked: Checked = (declared, message, work) => {
      if (declared.admits) return (async () => work())();
      return declared.level === "always"
        ? this.#answerAlways(message, work)
        : this.#answer(declared, message, work);
    };
    defineServed(this, directoryMethods, handlersOf(part), {}, checked);
    addHalves(this, part, halves, checked);
  }

  get tables(): Tables {
    return this.#part.tables;
  }

  /** What an answer tells besides its content. To be called when the answer is complete. */
  told(): Told {
    return withFields<Told>({}, this.#part.hooks.tell);
  }

  async #answerAlways<T>(message: Envelope, work: Work<T>): Promise<Result<T>> {
    const { standing, ports } = this.#part;
    // A directory that went back may have an older placement than all others (G2), noticed or not.
    const mayBeLost = standing.current.stopped !== undefined || hasFewerShards(this.#part, message);
    const refusal = mayBeLost ? undefined : refusePlacement(this.#part, message);
    if (refusal !== undefined) return { ok: false, refusal };
    // A loss that another message has noticed may not be durable yet (H4).
    if (standing.current.stopped !== undefined) await ports.sql.flush();
    return work();
  }

  async #answer<T>(
    { level }: Method<Envelope, unknown>,
    message: Envelope,
    work: Work<T>,
  ): Promise<Result<T>> {
    const { standing, ports, store } = this.#part;
    // An object asks again when it meets another placement than its own (G3).
    const { placement = message.placement } = level === "unplaced" ? store : message;
    const before = await refusalOf(this.#part, { ...message, placement });
    if (before !== undefined) return { ok: false, refusal: before };
    const reply = await work();
    if (level === "peer") return reply;
    // Answers from the rows, once they are durable and if the history was not found to be lost meanwhile.
    await ports.sql.flush();
    const refusal = standing.current.stopped;
    return refusal === undefined ? reply : { ok: false, refusal };
  }
}

export interface Directory extends DirectoryCalls {}

/** What carries out the methods of a directory, after their checks. */
function handlersOf(part: DirectoryPart): Handlers<typeof directoryMethods> {
  return {
    /**
     * Answers the placement in force (P1), whatever that of the message is. There is none before the first
     * cell is registered, because only that fixes it (P2).
     */
    confirm: (message) => {
      if (message.cell !== undefined && part.store.cell(message.cell) === undefined) {
        return refused(
          "PERMISSION_DENIED",
          `cell ${message.cell} is not registered; an operator must add it`,
          { reason: "CELL_UNKNOWN" },
        );
      }
      const { placement } = part.store;
      if (placement === undefined)
        return refused("UNAVAILABLE", "no cell is registered yet; an operator must register the first one", {
          reason: "NO_CELLS",
        });
      return ok(withFields<Confirmed>({ placement }, part.hooks.confirmed));
    },
    snapshot: (message) => {
      const { store } = part;
      const own: Partial<Snapshot> = {
        placement: store.placement ?? message.placement,
        point: pointOfRows(part),
        isPlaced: store.placement !== undefined,
        cells: store.cells(),
      };
      return ok(withFields<Snapshot, [SnapshotRequest]>(own, part.hooks.snapshot, message));
    },
    /** Returns counts for monitoring. It writes nothing. */
    metrics: () =>
      ok(
        withFields<DirectoryMetrics>(
          {
            startedAtMs: part.startedAtMs,
            sizeBytes: part.ports.sql.sizeBytes(),
            waitingWrites: part.commits.waiting,
          },
          part.hooks.metrics,
        ),
      ),
  };
}

import type { GroupCommit } from "../../kernel/group-commit.ts";
import type { Limits } from "../../../common/limits.ts";
import type { Envelope } from "../../kernel/messages.ts";
import type { DirectoryMetrics } from "../../kernel/metrics/messages.ts";
import type { Ports } from "../../kernel/ports.ts";
import { ok, refused, type Refusal, type Result } from "../../kernel/refusal.ts";

export interface VerificationSlotRequest extends Envelope {
  cell: string;
  /** Identifies the run that verifies. */
  uuid: string;
}

export interface VerificationSlot {
  cell: string;
  uuid: string;
  expiresAtMs: number;
  expiresInMs: number;
}

type VerificationSlotRow = Omit<VerificationSlot, "expiresInMs"> & { takenAtMs: number };

interface Place {
  cell: string;
  place: number;
}

interface Needs {
  readonly ports: Ports;
  readonly limits: Limits;
  readonly commits: GroupCommit;
}

/**
 * Limits how many cells verify at the same time (A3). Cells that find no slot wait in a queue, one place for
 * each. Slots and places control load and nothing else: a run without a slot does no harm, so a clock may end
 * them (M4).
 */
export class VerificationSlots {
  readonly #part: Needs;

  constructor(part: Needs) {
    this.#part = part;
  }

  /**
   * Takes a slot for a run, or renews the one that it has, but not beyond its turn while other cells wait for
   * it. Without a slot, the cell gets a place.
   */
  take({ cell, uuid }: VerificationSlotRequest): Promise<Result<VerificationSlot>> {
    return this.#part.commits.submit("take_slot", () => {
      const now = this.#part.ports.clock.now();
      const taken = this.#present(now);
      const own = taken.find((slot) => slot.cell === cell);
      if (own !== undefined && own.uuid !== uuid)
        return noSlot("another run of this cell has the verification slot", own.expiresAtMs - now);
      this.#prune(now);
      const isOver = own !== undefined && now - own.takenAtMs >= this.#part.limits.verificationTurnMs;
      if (own === undefined || isOver) {
        const held = taken.length - (own === undefined ? 0 : 1);
        const free = Math.max(0, this.#part.limits.verificationSlots - held);
        const ahead = this.#placesAhead(cell);
        if (ahead >= free) {
          this.#part.ports.sql.all("DELETE FROM verification_slot WHERE cell = ?", cell);
          return this.#wait(cell, ahead, free, now);
        }
        this.#part.ports.sql.all("DELETE FROM verification_place WHERE cell = ?", cell);
      }
      const expiresInMs = this.#part.limits.verificationSlotMs;
      const expiresAtMs = now + expiresInMs;
      this.#part.ports.sql.all(
        `INSERT INTO verification_slot (cell, uuid, taken_at_ms, expires_at_ms) VALUES (?, ?, ?, ?)
         ON CONFLICT (cell) DO UPDATE SET
           (taken_at_ms, expires_at_ms) = (min(taken_at_ms, excluded.taken_at_ms), excluded.expires_at_ms)`,
        cell,
        uuid,
        now,
        expiresAtMs,
      );
      return ok({ cell, uuid, expiresAtMs, expiresInMs });
    });
  }

  /** Releases the slot of a run. Returns whether the run had one. A place in the queue stays. */
  release({ cell, uuid }: VerificationSlotRequest): Promise<Result<boolean>> {
    return this.#part.commits.submit("release_slot", () => {
      const now = this.#part.ports.clock.now();
      const had = this.#present(now).some((slot) => slot.cell === cell && slot.uuid === uuid);
      this.#prune(now);
      if (had) this.#part.ports.sql.all("DELETE FROM verification_slot WHERE cell = ?", cell);
      return ok(had);
    });
  }

  /** Forgets a cell that is removed. To be called in a transaction. */
  forget(cell: string): void {
    this.#part.ports.sql.all("DELETE FROM verification_slot WHERE cell = ?", cell);
    this.#part.ports.sql.all("DELETE FROM verification_place WHERE cell = ?", cell);
  }

  /** Who has the slots, and how many cells wait for one. */
  counts(): Pick<DirectoryMetrics, "verificationSlots" | "verificationWaiting"> {
    const now = this.#part.ports.clock.now();
    const sql = "SELECT count(*) AS n FROM verification_place WHERE ask_by_ms > ?";
    return {
      verificationSlots: this.#present(now).map(({ cell, takenAtMs }) => ({
        cell,
        heldMs: Math.max(0, now - takenAtMs),
      })),
      verificationWaiting: this.#part.ports.sql.all<{ n: number }>(sql, now)[0]?.n ?? 0,
    };
  }

  /** The number of cells that wait and come before this one. */
  #placesAhead(cell: string): number {
    const places = this.#part.ports.sql.all<Place>(
      "SELECT cell, place FROM verification_place ORDER BY place",
    );
    const index = places.findIndex((each) => each.cell === cell);
    return index === -1 ? places.length : index;
  }

  /**
   * Gives the cell a place at the end of the queue, or keeps the one that it has. The next cells in line ask
   * often, because a slot may be released at any time. The others ask less often, so that a long queue is no
   * load. A cell that is late by the length of a slot has stopped asking, and loses its place.
   */
  #wait(cell: string, ahead: number, free: number, now: number): { ok: false; refusal: Refusal } {
    const { verificationSlots, verificationSlotMs } = this.#part.limits;
    const turns = 1 + Math.floor((ahead - free) / verificationSlots);
    const retryAfterMs = Math.min(verificationSlotMs, Math.ceil((verificationSlotMs * turns) / NEXT_ASKS));
    this.#part.ports.sql.all(
      `INSERT INTO verification_place (cell, place, ask_by_ms)
       VALUES (?1, (SELECT coalesce(max(place), 0) + 1 FROM verification_place), ?2)
       ON CONFLICT (cell) DO UPDATE SET ask_by_ms = excluded.ask_by_ms`,
      cell,
      now + retryAfterMs + verificationSlotMs,
    );
    return noSlot(
      `no verification slot is free for this cell, which has place ${ahead + 1} in the queue`,
      retryAfterMs,
    );
  }

  /**
   * Returns the slots that are taken: those that have not expired, and that do not end much later than a slot
   * can. A slot ends too late if the clock was set back or the limit was lowered.
   */
  #present(now: number): VerificationSlotRow[] {
    return this.#part.ports.sql.all<VerificationSlotRow>(
      `SELECT cell, uuid, taken_at_ms AS takenAtMs, expires_at_ms AS expiresAtMs FROM verification_slot
        WHERE expires_at_ms > ? AND expires_at_ms <= ?`,
      now,
      this.#latest(now),
    );
  }

  /** A clock that is set back by less than the length of a slot ends no slot. */
  #latest(now: number): number {
    return now + 2 * this.#part.limits.verificationSlotMs;
  }

  /** Deletes the other slots, and the places of cells that have stopped asking. */
  #prune(now: number): void {
    this.#part.ports.sql.all(
      "DELETE FROM verification_slot WHERE expires_at_ms <= ? OR expires_at_ms > ?",
      now,
      this.#latest(now),
    );
    // A place lasts for up to the length of two slots, and as for slots, one more is for the clock.
    this.#part.ports.sql.all(
      "DELETE FROM verification_place WHERE ask_by_ms <= ? OR ask_by_ms > ?",
      now,
      now + 3 * this.#part.limits.verificationSlotMs,
    );
  }
}

/** How often the next cells in line ask during the length of a slot. */
const NEXT_ASKS = 4;

function noSlot(detail: string, retryAfterMs: number): { ok: false; refusal: Refusal } {
  return refused("RESOURCE_EXHAUSTED", `${detail}; ask again after Retry-After`, {
    reason: "NO_VERIFICATION_SLOT",
    retryAfterMs,
  });
}

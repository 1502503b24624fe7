import type { GroupCommit } from "../group-commit.ts";
import type { Limits } from "../limits.ts";
import type { Envelope, Reply } from "../messages.ts";
import type { Ports } from "../ports.ts";
import { ok, refused, type Refusal } from "../refusal.ts";

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

type VerificationSlotRow = Omit<VerificationSlot, "expiresInMs">;

/**
 * Limits how many cells verify at the same time (A3). A slot controls load and nothing else: a run without a
 * slot does no harm, so a clock may end a slot (M4).
 */
export class VerificationSlots {
  readonly #ports: Ports;
  readonly #limits: Limits;
  readonly #commits: GroupCommit;

  constructor(ports: Ports, limits: Limits, commits: GroupCommit) {
    this.#ports = ports;
    this.#limits = limits;
    this.#commits = commits;
  }

  /** Takes a slot for a run, or renews the one that it has. */
  take({ cell, uuid }: VerificationSlotRequest): Promise<Reply<VerificationSlot>> {
    return this.#commits.submit("take_slot", () => {
      const now = this.#ports.clock.now();
      const taken = this.#present(now);
      const own = taken.find((slot) => slot.cell === cell);
      if (own !== undefined && own.uuid !== uuid)
        return noSlot("another run of this cell has the verification slot; retry later", [own], now);
      if (own === undefined && taken.length >= this.#limits.verificationSlots) {
        return noSlot(`all verification slots (${taken.length}) are taken; retry later`, taken, now);
      }
      const expiresInMs = this.#limits.verificationSlotMs;
      const expiresAtMs = now + expiresInMs;
      this.#prune(now);
      this.#ports.sql.all(
        `INSERT INTO verification_slot (cell, uuid, expires_at_ms) VALUES (?, ?, ?)
         ON CONFLICT (cell) DO UPDATE SET expires_at_ms = excluded.expires_at_ms`,
        cell,
        uuid,
        expiresAtMs,
      );
      return ok({ cell, uuid, expiresAtMs, expiresInMs });
    });
  }

  /** Releases the slot of a run. Returns whether the run had one. */
  release({ cell, uuid }: VerificationSlotRequest): Promise<Reply<boolean>> {
    return this.#commits.submit("release_slot", () => {
      const now = this.#ports.clock.now();
      const had = this.#present(now).some((slot) => slot.cell === cell && slot.uuid === uuid);
      this.#prune(now);
      if (had) this.#ports.sql.all("DELETE FROM verification_slot WHERE cell = ?", cell);
      return ok(had);
    });
  }

  /**
   * Returns the slots that are taken: those that have not expired, and that do not end much later than a slot
   * can. A slot ends too late if the clock was set back or the limit was lowered.
   */
  #present(now: number): VerificationSlotRow[] {
    return this.#ports.sql.all<VerificationSlotRow>(
      `SELECT cell, uuid, expires_at_ms AS expiresAtMs FROM verification_slot
        WHERE expires_at_ms > ? AND expires_at_ms <= ?`,
      now,
      this.#latest(now),
    );
  }

  /** A clock that is set back by less than the length of a slot ends no slot. */
  #latest(now: number): number {
    return now + 2 * this.#limits.verificationSlotMs;
  }

  /** Deletes the other slots. Not called for a refusal, which only reads. */
  #prune(now: number): void {
    this.#ports.sql.all(
      "DELETE FROM verification_slot WHERE expires_at_ms <= ? OR expires_at_ms > ?",
      now,
      this.#latest(now),
    );
  }
}

/**
 * The retry time is when the first of the taken slots expires. If its run renews it, the next call is refused
 * in the same way.
 */
function noSlot(
  detail: string,
  taken: readonly VerificationSlotRow[],
  now: number,
): { ok: false; refusal: Refusal } {
  const retryAfterMs = Math.min(...taken.map(({ expiresAtMs }) => expiresAtMs)) - now;
  return refused("RESOURCE_EXHAUSTED", detail, { reason: "NO_VERIFICATION_SLOT", retryAfterMs });
}

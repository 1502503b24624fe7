import type { GroupCommit } from "../group-commit.ts";
import type { Limits } from "../limits.ts";
import type { Envelope, Reply } from "../messages.ts";
import type { Ports } from "../ports.ts";
import { ok, refused, type Refusal } from "../refusal.ts";

export interface VerificationSlotRequest extends Envelope {
  cell: string;
  /** Of the run that verifies. */
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
 * Lets a few cells verify at a time (rule A3). It steers load and nothing else: a run that goes on without its slot only costs more, so a clock may
 * decide when one is over (rule M4).
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

  /** Takes a slot, or renews it. */
  take({ cell, uuid }: VerificationSlotRequest): Promise<Reply<VerificationSlot>> {
    return this.#commits.submit("take_slot", () => {
      const now = this.#ports.clock.now();
      const taken = this.#present(now);
      const own = taken.find((slot) => slot.cell === cell);
      if (own !== undefined && own.uuid !== uuid)
        return noSlot("another run of the cell has a slot", [own], now);
      if (own === undefined && taken.length >= this.#limits.verificationSlots) {
        return noSlot(`${taken.length} cells are being verified, which is the limit`, taken, now);
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

  /** Whether there was one to release. */
  release({ cell, uuid }: VerificationSlotRequest): Promise<Reply<boolean>> {
    return this.#commits.submit("release_slot", () => {
      const now = this.#ports.clock.now();
      const had = this.#present(now).some((slot) => slot.cell === cell && slot.uuid === uuid);
      this.#prune(now);
      if (had) this.#ports.sql.all("DELETE FROM verification_slot WHERE cell = ?", cell);
      return ok(had);
    });
  }

  /** Not those that are over, nor those that would last much longer than any can: the clock was set back, or the limit is lower now. */
  #present(now: number): VerificationSlotRow[] {
    return this.#ports.sql.all<VerificationSlotRow>(
      "SELECT cell, uuid, expires_at_ms AS expiresAtMs FROM verification_slot WHERE expires_at_ms > ? AND expires_at_ms <= ?",
      now,
      this.#latest(now),
    );
  }

  /** A clock that is put right by less than a slot's length takes no slot away. */
  #latest(now: number): number {
    return now + 2 * this.#limits.verificationSlotMs;
  }

  /** Forgets the others. A refusal only reads. */
  #prune(now: number): void {
    this.#ports.sql.all(
      "DELETE FROM verification_slot WHERE expires_at_ms <= ? OR expires_at_ms > ?",
      now,
      this.#latest(now),
    );
  }
}

/** The first of them may be renewed; then the caller hears the same again. */
function noSlot(
  detail: string,
  taken: readonly VerificationSlotRow[],
  now: number,
): { ok: false; refusal: Refusal } {
  const retryAfterMs = Math.min(...taken.map(({ expiresAtMs }) => expiresAtMs)) - now;
  return refused("RESOURCE_EXHAUSTED", detail, { reason: "NO_VERIFICATION_SLOT", retryAfterMs });
}

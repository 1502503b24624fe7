import { GroupCommit } from "../../kernel/group-commit.ts";
import type { Slot } from "../../kernel/slot.ts";
import type { Standing } from "../../kernel/standing.ts";
import type { CellCall, Lease } from "../../kernel/messages.ts";
import type { Ports } from "../../kernel/ports.ts";
import { ok, refused, type Result } from "../../kernel/refusal.ts";
import { decidedOtherwise } from "../../kernel/ledger/decided-otherwise.ts";
import type { Positions } from "../../kernel/ledger/position.ts";
import type { LedgerStore } from "../../kernel/ledger/store.ts";

/** Says that the cell still works on a lease (C8). */
export interface RenewRequest extends CellCall {
  lease: string;
  reason: string;
}

/** A renewal so soon after the last one would change nothing that matters, so it is not written. */
const MIN_INTERVAL_MS = 1_000;

/**
 * Stores that the cell still works on a granted lease (C8). A renewal decides nothing. It has transactions of
 * its own, because it is no part of the ledger's history: a cell that only renews must not use up
 * incarnations, and a renewal that is lost makes a lease look stale sooner, which decides nothing either.
 */
export class Renewals {
  readonly #ports: Pick<Ports, "sql" | "clock" | "halt">;
  readonly #store: LedgerStore;
  readonly #positions: Pick<Positions, "last">;
  readonly #commits: GroupCommit;

  constructor(
    ports: Pick<Ports, "sql" | "clock" | "halt">,
    store: LedgerStore,
    positions: Pick<Positions, "last">,
    standing: Slot<Standing>,
  ) {
    this.#ports = ports;
    this.#store = store;
    this.#positions = positions;
    this.#commits = new GroupCommit(ports, standing);
  }

  renew(request: RenewRequest): Promise<Result<Lease>> {
    return this.#commits.submit("renew", () => this.#write(request));
  }

  /** Reads the row in the transaction that writes it, because it may have been decided meanwhile (M1). */
  #write({ lease, reason }: RenewRequest): Result<Lease> {
    const row = this.#store.find(lease);
    if (row === undefined || row.transfer !== null)
      return refused("NOT_FOUND", "this cell has no lease with this id");
    if (row.state !== "GRANTED") return { ok: false, refusal: decidedOtherwise(row) };
    const now = this.#ports.clock.now();
    this.#store.times.note(now, this.#positions.last);
    const isNew =
      row.renewed_at_ms === null ||
      row.renewal_reason !== reason ||
      Math.abs(now - row.renewed_at_ms) >= MIN_INTERVAL_MS;
    if (!isNew) return ok(this.#store.leaseOf(row, now));
    this.#ports.sql.all(
      "UPDATE lease SET renewed_at_ms = ?, renewal_reason = ? WHERE lease = ? AND decided = 0",
      now,
      reason,
      lease,
    );
    return ok(this.#store.leaseOf({ ...row, renewed_at_ms: now, renewal_reason: reason }, now));
  }
}

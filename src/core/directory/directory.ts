import { GroupCommit } from "../group-commit.ts";
import type { Limits } from "../limits.ts";
import { MESSAGE_VERSION, type Confirm, type Envelope, type Reply } from "../messages.ts";
import { migrate, readMeta, readMetaNumber, writeMeta } from "../meta.ts";
import type { Placement } from "../placement.ts";
import type { Ports, SqlValue } from "../ports.ts";
import { changedMeanwhile, ok, refused, type Refusal } from "../refusal.ts";
import { sourceOrder } from "../source-order.ts";
import { placementMismatch } from "../placement-guard.ts";
import { directorySchema } from "./schema.ts";
import {
  VerificationSlots,
  type VerificationSlot,
  type VerificationSlotRequest,
} from "./verification-slots.ts";

export interface Cell {
  cell: string;
  name: string;
  address: string;
  locationHint: string | null;
  createdAtMs: number;
  updatedAtMs: number;
}

export interface CellChange extends Envelope {
  cell: string;
  name?: string;
  address?: string;
  updatedAtMs: number;
}

export type Role = "cell" | "router" | "operator";

export interface MintedKey {
  keyId: string;
  role: Role;
  cell: string | null;
  note: string | null;
  createdAtMs: number;
  expiresAtMs: number;
  revokedAtMs: number | null;
}

/** Everything that requests need from the directory. Each isolate keeps a copy. */
export interface Snapshot {
  placement: Placement;
  cells: Cell[];
  /** The ids of revoked keys: those that expire last, at most `maxRevokedKeys`. */
  revokedKeys: string[];
  /** Keys that expire no later may be revoked without being listed, so all of them are refused (A1). */
  revokedThroughMs: number;
}

export interface KeyPage {
  keys: (MintedKey & { position: number })[];
  more: boolean;
}

const CELL =
  "cell, name, address, location_hint AS locationHint, " +
  "created_at_ms AS createdAtMs, updated_at_ms AS updatedAtMs";
const KEY =
  "key_id AS keyId, role, cell, note, created_at_ms AS createdAtMs, expires_at_ms AS expiresAtMs, " +
  "revoked_at_ms AS revokedAtMs, position";

/**
 * Stores what must never differ between machines: the placement, the cells and the keys. A begin, commit or
 * rollback does not need it, except at the first use of a ledger or shard.
 */
export class Directory {
  readonly #ports: Ports;
  readonly #limits: Limits;
  readonly #commits: GroupCommit;
  readonly #slots: VerificationSlots;

  constructor(ports: Ports, limits: Limits) {
    migrate(ports.sql, directorySchema);
    this.#ports = ports;
    this.#limits = limits;
    this.#commits = new GroupCommit(ports.sql, ports.clock, ports.halt);
    this.#slots = new VerificationSlots(ports, limits, this.#commits);
  }

  /**
   * Confirms a placement (P1). There is none to confirm before the first cell is registered, because only
   * that fixes it (P2).
   */
  async confirm(message: Confirm): Promise<Reply<null>> {
    const refusal = this.#refuseMismatch(message);
    if (refusal !== undefined) return { ok: false, refusal };
    if (message.cell !== undefined && this.#cell(message.cell) === undefined) {
      return refused("PERMISSION_DENIED", `cell ${message.cell} is not registered; an operator must add it`, {
        reason: "CELL_UNKNOWN",
      });
    }
    if (this.#placement === undefined)
      return refused("UNAVAILABLE", "no cell is registered yet; an operator must register the first one", {
        reason: "NO_CELLS",
      });
    return this.#durable(ok(null));
  }

  async snapshot(message: Envelope): Promise<Reply<Snapshot>> {
    const refusal = this.#refuseMismatch(message);
    if (refusal !== undefined) return { ok: false, refusal };
    const cells = this.#all<Cell>(`SELECT ${CELL} FROM cell ORDER BY cell_order`);
    // No clock determines which keys are left out: a clock that is ahead for some time would let revoked keys
    // in (A1).
    const { maxRevokedKeys } = this.#limits;
    const revoked = this.#all<{ keyId: string; expiresAtMs: number }>(
      `SELECT key_id AS keyId, expires_at_ms AS expiresAtMs FROM minted_key
        WHERE revoked_at_ms IS NOT NULL ORDER BY expires_at_ms DESC, key_id LIMIT ?`,
      maxRevokedKeys + 1,
    );
    return this.#durable(
      ok({
        placement: message.placement,
        cells,
        revokedKeys: revoked.slice(0, maxRevokedKeys).map(({ keyId }) => keyId),
        revokedThroughMs: revoked[maxRevokedKeys]?.expiresAtMs ?? 0,
      }),
    );
  }

  async addCell(
    message: Envelope & Pick<Cell, "cell" | "name" | "address" | "locationHint">,
  ): Promise<Reply<Cell>> {
    const refusal = this.#refuseMismatch(message);
    if (refusal !== undefined) return { ok: false, refusal };
    return this.#commits.submit("add_cell", () => {
      // Another first cell may have been registered meanwhile, with another placement (P2).
      const mismatch = this.#refusePlacement(message);
      if (mismatch !== undefined) return { ok: false, refusal: mismatch };
      if (this.#cell(message.cell) !== undefined)
        return refused("ALREADY_EXISTS", `cell ${message.cell} is already registered`, {
          reason: "CELL_EXISTS",
        });
      const count = this.#all<{ n: number }>("SELECT count(*) AS n FROM cell")[0]?.n ?? 0;
      if (count >= this.#limits.maxCells)
        return refused(
          "RESOURCE_EXHAUSTED",
          `the deployment has reached its limit of ${this.#limits.maxCells} cells (LEASEHOLD_MAX_CELLS)`,
        );
      const { cell, name, address, locationHint } = message;
      const now = this.#now();
      if (this.#placement === undefined) writeMeta(this.#ports.sql, "placement", message.placement);
      this.#all(
        `INSERT INTO cell (cell, cell_order, name, address, location_hint, created_at_ms, updated_at_ms)
         VALUES (?, ?, ?, ?, ?, ?, ?)`,
        cell,
        sourceOrder(cell),
        name,
        address,
        locationHint,
        now,
        now,
      );
      return ok({ cell, name, address, locationHint, createdAtMs: now, updatedAtMs: now });
    });
  }

  /**
   * Changes a cell, based on the version with `updatedAtMs`. If the cell has changed since, the change is
   * refused (A2).
   */
  async changeCell(message: CellChange): Promise<Reply<Cell>> {
    const refusal = this.#refuseMismatch(message);
    if (refusal !== undefined) return { ok: false, refusal };
    return this.#commits.submit("change_cell", () => {
      const before = this.#cell(message.cell);
      if (before === undefined) return cellUnknown(message.cell);
      const { name = before.name, address = before.address } = message;
      const isSame = name === before.name && address === before.address;
      if (before.updatedAtMs !== message.updatedAtMs && !isSame)
        return changedMeanwhile(`cell ${message.cell}`);
      // A change that changes nothing also makes a new version, so that messages sent before it are refused
      // afterwards (A2).
      const after: Cell = {
        ...before,
        name,
        address,
        updatedAtMs: Math.max(this.#now(), before.updatedAtMs + 1),
      };
      this.#all(
        "UPDATE cell SET name = ?, address = ?, updated_at_ms = ? WHERE cell = ?",
        after.name,
        after.address,
        after.updatedAtMs,
        after.cell,
      );
      return ok(after);
    });
  }

  /** Stores what describes a minted key, without the key itself. */
  async recordKey(message: Envelope & { key: MintedKey }): Promise<Reply<MintedKey>> {
    const refusal = this.#refuseMismatch(message);
    if (refusal !== undefined) return { ok: false, refusal };
    return this.#commits.submit("record_key", () => {
      const { key } = message;
      if (key.cell !== null && this.#cell(key.cell) === undefined) return cellUnknown(key.cell);
      // The message may arrive twice, and the key may be revoked in between.
      const stored = this.#key(key.keyId);
      if (stored !== undefined) return ok(stored);
      this.#putKey(key);
      return ok(key);
    });
  }

  /**
   * Returns the stored description of a key that is to be revoked, or null for a key that was minted
   * elsewhere. Refuses if there is no room for one more revoked key, before the revocation is acknowledged
   * anywhere.
   */
  async keyToRevoke(message: Envelope & { keyId: string }): Promise<Reply<MintedKey | null>> {
    const refusal = this.#refuseMismatch(message);
    if (refusal !== undefined) return { ok: false, refusal };
    const key = this.#key(message.keyId) ?? null;
    const full = this.#refuseIfFull(key);
    return full === undefined ? this.#durable(ok(key)) : { ok: false, refusal: full };
  }

  /**
   * Lists keys in the order of their last changes, oldest first, because only this order can be continued
   * with a position.
   */
  async listKeys(message: Envelope & { afterPosition: number; limit: number }): Promise<Reply<KeyPage>> {
    const refusal = this.#refuseMismatch(message);
    if (refusal !== undefined) return { ok: false, refusal };
    const rows = this.#all<MintedKey & { position: number }>(
      `SELECT ${KEY} FROM minted_key WHERE position > ? ORDER BY position LIMIT ?`,
      message.afterPosition,
      message.limit + 1,
    );
    return this.#durable(ok({ keys: rows.slice(0, message.limit), more: rows.length > message.limit }));
  }

  /**
   * Revokes a key. Idempotent. `key` describes the key, so that a key that was minted elsewhere can also be
   * revoked.
   */
  async revokeKey(message: Envelope & { key: MintedKey }): Promise<Reply<MintedKey>> {
    const refusal = this.#refuseMismatch(message);
    if (refusal !== undefined) return { ok: false, refusal };
    return this.#commits.submit("revoke_key", () => {
      const stored = this.#key(message.key.keyId) ?? message.key;
      // For a key that was minted elsewhere, the cell is only what the caller says, so a later call may
      // correct it.
      if (stored.revokedAtMs !== null && stored.cell === message.key.cell) return ok(stored);
      const full = this.#refuseIfFull(stored);
      if (full !== undefined) return { ok: false, refusal: full };
      const key = {
        ...stored,
        role: message.key.role,
        cell: message.key.cell,
        revokedAtMs: stored.revokedAtMs ?? this.#now(),
      };
      this.#putKey(key);
      return ok(key);
    });
  }

  async takeSlot(message: VerificationSlotRequest): Promise<Reply<VerificationSlot>> {
    const refusal = this.#refuseMismatch(message);
    if (refusal !== undefined) return { ok: false, refusal };
    // The queue has one place for each registered cell, so `maxCells` bounds it.
    return this.#cell(message.cell) === undefined ? cellUnknown(message.cell) : this.#slots.take(message);
  }

  /** Releases a slot. Idempotent. Returns whether the run had one. */
  async releaseSlot(message: VerificationSlotRequest): Promise<Reply<boolean>> {
    const refusal = this.#refuseMismatch(message);
    return refusal === undefined ? this.#slots.release(message) : { ok: false, refusal };
  }

  /** Returns why one more revoked key has no room. A key that is already revoked needs no room. */
  #refuseIfFull(key: MintedKey | null): Refusal | undefined {
    if (key !== null && key.revokedAtMs !== null) return undefined;
    const sql = "SELECT count(*) AS n FROM minted_key WHERE revoked_at_ms IS NOT NULL AND expires_at_ms > ?";
    const revoked = this.#all<{ n: number }>(sql, this.#now())[0]?.n ?? 0;
    if (revoked < this.#limits.maxRevokedKeys) return undefined;
    return refused(
      "RESOURCE_EXHAUSTED",
      `${this.#limits.maxRevokedKeys} revoked keys have not expired yet, which is the limit; ` +
        "rotate the signing secret",
    ).refusal;
  }

  #refuseMismatch(message: Envelope): Refusal | undefined {
    if (message.version !== MESSAGE_VERSION) {
      return refused(
        "UNAVAILABLE",
        `message version ${message.version} is unknown here; retry when the deployment is complete`,
        { reason: "MESSAGE_VERSION" },
      ).refusal;
    }
    return this.#refusePlacement(message);
  }

  /** Until the first cell is registered, no placement is fixed, and all fit (P2). */
  #refusePlacement({ placement }: Envelope): Refusal | undefined {
    const kept = this.#placement;
    return kept === undefined || kept === placement ? undefined : placementMismatch(kept, placement);
  }

  get #placement(): Placement | undefined {
    const kept = readMeta(this.#ports.sql, "placement");
    return kept === undefined ? undefined : String(kept);
  }

  #cell(cell: string): Cell | undefined {
    return this.#all<Cell>(`SELECT ${CELL} FROM cell WHERE cell = ?`, cell)[0];
  }

  #key(keyId: string): MintedKey | undefined {
    return this.#all<MintedKey>(`SELECT ${KEY} FROM minted_key WHERE key_id = ?`, keyId)[0];
  }

  #putKey(key: MintedKey): void {
    const position = readMetaNumber(this.#ports.sql, "key_position") + 1;
    writeMeta(this.#ports.sql, "key_position", position);
    this.#all(
      `INSERT OR REPLACE INTO minted_key (key_id, position, role, cell, note, created_at_ms, expires_at_ms,
                                          revoked_at_ms)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
      key.keyId,
      position,
      key.role,
      key.cell,
      key.note,
      key.createdAtMs,
      key.expiresAtMs,
      key.revokedAtMs,
    );
  }

  #all<Row>(statement: string, ...bindings: SqlValue[]): Row[] {
    return this.#ports.sql.all<Row>(statement, ...bindings);
  }

  #now(): number {
    return this.#ports.clock.now();
  }

  async #durable<T>(reply: Reply<T>): Promise<Reply<T>> {
    await this.#ports.sql.flush();
    return reply;
  }
}

const cellUnknown = (cell: string): { ok: false; refusal: Refusal } =>
  refused("NOT_FOUND", `cell ${cell} is not registered; an operator must add it`, { reason: "CELL_UNKNOWN" });

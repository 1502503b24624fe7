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

/** What an isolate keeps a copy of: all that requests need from the directory. */
export interface Snapshot {
  placement: Placement;
  cells: Cell[];
  /** Ids of revoked keys that have not expired by themselves. */
  revokedKeys: string[];
}

export interface KeyPage {
  keys: (MintedKey & { position: number })[];
  more: boolean;
}

const CELL =
  "cell, name, address, location_hint AS locationHint, created_at_ms AS createdAtMs, updated_at_ms AS updatedAtMs";
const KEY = `key_id AS keyId, role, cell, note, created_at_ms AS createdAtMs, expires_at_ms AS expiresAtMs,
  revoked_at_ms AS revokedAtMs, position`;

/** Holds what must never differ between machines: the placement, the cells, the keys. Nobody needs it on the hot path. */
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

  /** The first caller ever fixes the placement of the deployment; all others must have the same one (rule P1). */
  async confirm(message: Confirm): Promise<Reply<null>> {
    const refusal = await this.#refuseMismatch(message);
    if (refusal !== undefined) return { ok: false, refusal };
    if (message.cell !== undefined && this.#cell(message.cell) === undefined) {
      return refused("PERMISSION_DENIED", `cell ${message.cell} is not registered`, {
        reason: "CELL_UNKNOWN",
      });
    }
    return this.#durable(ok(null));
  }

  async snapshot(message: Envelope): Promise<Reply<Snapshot>> {
    const refusal = await this.#refuseMismatch(message);
    if (refusal !== undefined) return { ok: false, refusal };
    const cells = this.#all<Cell>(`SELECT ${CELL} FROM cell ORDER BY cell_order`);
    const revoked = this.#all<{ keyId: string }>(
      "SELECT key_id AS keyId FROM minted_key WHERE revoked_at_ms IS NOT NULL AND expires_at_ms > ?",
      this.#now(),
    );
    return this.#durable(
      ok({ placement: message.placement, cells, revokedKeys: revoked.map(({ keyId }) => keyId) }),
    );
  }

  async addCell(
    message: Envelope & Pick<Cell, "cell" | "name" | "address" | "locationHint">,
  ): Promise<Reply<Cell>> {
    const refusal = await this.#refuseMismatch(message);
    if (refusal !== undefined) return { ok: false, refusal };
    return this.#commits.submit("add_cell", () => {
      if (this.#cell(message.cell) !== undefined)
        return refused("ALREADY_EXISTS", `cell ${message.cell} is already registered`, {
          reason: "CELL_EXISTS",
        });
      const count = this.#all<{ n: number }>("SELECT count(*) AS n FROM cell")[0]?.n ?? 0;
      if (count >= this.#limits.maxCells)
        return refused(
          "RESOURCE_EXHAUSTED",
          `the deployment has ${this.#limits.maxCells} cells, which is its limit`,
        );
      const { cell, name, address, locationHint } = message;
      const now = this.#now();
      this.#all(
        "INSERT INTO cell (cell, cell_order, name, address, location_hint, created_at_ms, updated_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?)",
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

  /** `updatedAtMs`: of the cell as the caller saw it. A change that comes late finds another one (rule A2). */
  async changeCell(message: CellChange): Promise<Reply<Cell>> {
    const refusal = await this.#refuseMismatch(message);
    if (refusal !== undefined) return { ok: false, refusal };
    return this.#commits.submit("change_cell", () => {
      const before = this.#cell(message.cell);
      if (before === undefined) return cellUnknown(message.cell);
      const { name = before.name, address = before.address } = message;
      const isSame = name === before.name && address === before.address;
      if (before.updatedAtMs !== message.updatedAtMs && !isSame)
        return changedMeanwhile(`cell ${message.cell}`);
      // A new version also when nothing changes: nothing that was sent before may come after this answer.
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

  /** Remembers a key that was made; without its secret part. */
  async recordKey(message: Envelope & { key: MintedKey }): Promise<Reply<MintedKey>> {
    const refusal = await this.#refuseMismatch(message);
    if (refusal !== undefined) return { ok: false, refusal };
    return this.#commits.submit("record_key", () => {
      const { key } = message;
      if (key.cell !== null && this.#cell(key.cell) === undefined) return cellUnknown(key.cell);
      // The message may come twice, and the key may be revoked by then.
      const stored = this.#key(key.keyId);
      if (stored !== undefined) return ok(stored);
      this.#putKey(key);
      return ok(key);
    });
  }

  /** What is known of a key that is to be revoked. Refused where there is no room for it, before anybody is told that it is. */
  async keyToRevoke(message: Envelope & { keyId: string }): Promise<Reply<MintedKey | null>> {
    const refusal = await this.#refuseMismatch(message);
    if (refusal !== undefined) return { ok: false, refusal };
    const key = this.#key(message.keyId) ?? null;
    const full = this.#refuseIfFull(key);
    return full === undefined ? this.#durable(ok(key)) : { ok: false, refusal: full };
  }

  /** Newest first is what people want to see, but only the order of changes can be continued; so oldest change first. */
  async listKeys(message: Envelope & { afterPosition: number; limit: number }): Promise<Reply<KeyPage>> {
    const refusal = await this.#refuseMismatch(message);
    if (refusal !== undefined) return { ok: false, refusal };
    const rows = this.#all<MintedKey & { position: number }>(
      `SELECT ${KEY} FROM minted_key WHERE position > ? ORDER BY position LIMIT ?`,
      message.afterPosition,
      message.limit + 1,
    );
    return this.#durable(ok({ keys: rows.slice(0, message.limit), more: rows.length > message.limit }));
  }

  /** Idempotent. `key` is what is known of it: also one that was never minted here can be revoked. */
  async revokeKey(message: Envelope & { key: MintedKey }): Promise<Reply<MintedKey>> {
    const refusal = await this.#refuseMismatch(message);
    if (refusal !== undefined) return { ok: false, refusal };
    return this.#commits.submit("revoke_key", () => {
      const stored = this.#key(message.key.keyId) ?? message.key;
      // The cell of a key that was made elsewhere is only what callers say, and may be corrected.
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
    const refusal = await this.#refuseMismatch(message);
    return refusal === undefined ? this.#slots.take(message) : { ok: false, refusal };
  }

  /** Idempotent; whether there was one. */
  async releaseSlot(message: VerificationSlotRequest): Promise<Reply<boolean>> {
    const refusal = await this.#refuseMismatch(message);
    return refusal === undefined ? this.#slots.release(message) : { ok: false, refusal };
  }

  /** One more revoked key; correcting one that is revoked takes no room. */
  #refuseIfFull(key: MintedKey | null): Refusal | undefined {
    if (key !== null && key.revokedAtMs !== null) return undefined;
    const sql = "SELECT count(*) AS n FROM minted_key WHERE revoked_at_ms IS NOT NULL AND expires_at_ms > ?";
    const revoked = this.#all<{ n: number }>(sql, this.#now())[0]?.n ?? 0;
    if (revoked < this.#limits.maxRevokedKeys) return undefined;
    return refused(
      "RESOURCE_EXHAUSTED",
      "too many revoked keys have not expired yet; rotate the signing secret",
    ).refusal;
  }

  async #refuseMismatch(message: Envelope): Promise<Refusal | undefined> {
    if (message.version !== MESSAGE_VERSION) {
      return refused("UNAVAILABLE", `message version ${message.version} is not known here`, {
        reason: "MESSAGE_VERSION",
      }).refusal;
    }
    const kept = readMeta(this.#ports.sql, "placement");
    if (kept === undefined) {
      await this.#commits.submit("fix_placement", () => {
        if (readMeta(this.#ports.sql, "placement") === undefined)
          writeMeta(this.#ports.sql, "placement", message.placement);
      });
      return this.#refuseMismatch(message);
    }
    return kept === message.placement ? undefined : placementMismatch(String(kept), message.placement);
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
      `INSERT OR REPLACE INTO minted_key (key_id, position, role, cell, note, created_at_ms, expires_at_ms, revoked_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
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
  refused("NOT_FOUND", `cell ${cell} is not registered`, { reason: "CELL_UNKNOWN" });

import type { DirectoryPart } from "../../kernel/directory/part.ts";
import type { DirectoryStore } from "../../kernel/directory/store.ts";
import { readMetaNumber, writeMeta } from "../../kernel/meta.ts";
import type { Sql, SqlValue } from "../../kernel/ports.ts";
import type { ListedKey, MintedKey, RevokedKey } from "./messages.ts";

const KEY =
  "key_id AS keyId, role, cell, note, created_at_ms AS createdAtMs, expires_at_ms AS expiresAtMs, " +
  "revoked_at_ms AS revokedAtMs, position";

interface KeyCounts {
  keys: number;
  revokedKeys: number;
}

/** The SQL statements on the keys. It makes no decisions. */
export class KeyStore {
  readonly #sql: Sql;
  readonly #store: DirectoryStore;
  /** The numbers of keys at a position. Nothing but a change, which takes a new one, makes them wrong. */
  #counts: (KeyCounts & { position: number }) | undefined;

  constructor({ ports, store }: Pick<DirectoryPart, "ports" | "store">) {
    this.#sql = ports.sql;
    this.#store = store;
  }

  get(keyId: string): MintedKey | undefined {
    return this.#all<MintedKey>(`SELECT ${KEY} FROM minted_key WHERE key_id = ?`, keyId)[0];
  }

  /** Returns keys in the order of their last changes, oldest first. */
  after(position: number, limit: number): ListedKey[] {
    return this.#all<ListedKey>(
      `SELECT ${KEY} FROM minted_key WHERE position > ? ORDER BY position LIMIT ?`,
      position,
      limit,
    );
  }

  /** Returns revoked keys, those that expire last first. */
  revoked(limit: number): RevokedKey[] {
    return this.#all(
      `SELECT key_id AS keyId, expires_at_ms AS expiresAtMs FROM minted_key
        WHERE revoked_at_ms IS NOT NULL ORDER BY expires_at_ms DESC, key_id LIMIT ?`,
      limit,
    );
  }

  /** Returns the revoked keys of a cell, those that expire last first. */
  revokedOf(cell: string, limit: number): RevokedKey[] {
    return this.#all(
      `SELECT key_id AS keyId, expires_at_ms AS expiresAtMs FROM minted_key
        WHERE cell = ? AND revoked_at_ms IS NOT NULL ORDER BY expires_at_ms DESC, key_id LIMIT ?`,
      cell,
      limit,
    );
  }

  /** Returns the number of revoked keys that expire later than `nowMs`. */
  countRevoked(nowMs: number): number {
    const sql = "SELECT count(*) AS n FROM minted_key WHERE revoked_at_ms IS NOT NULL AND expires_at_ms > ?";
    return this.#all<{ n: number }>(sql, nowMs)[0]?.n ?? 0;
  }

  put(key: MintedKey): void {
    this.#all(
      `INSERT OR REPLACE INTO minted_key (key_id, position, role, cell, note, created_at_ms, expires_at_ms,
                                          revoked_at_ms)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
      key.keyId,
      this.#store.nextPosition(),
      key.role,
      key.cell,
      key.note,
      key.createdAtMs,
      key.expiresAtMs,
      key.revokedAtMs,
    );
  }

  /** Returns the number of keys that expire later than `nowMs`. */
  count(nowMs: number): number {
    const sql = "SELECT count(*) AS n FROM minted_key WHERE expires_at_ms > ?";
    return this.#all<{ n: number }>(sql, nowMs)[0]?.n ?? 0;
  }

  /** Returns how many keys are described and revoked. It reads all of them, once after each change. */
  counts(): KeyCounts {
    const { position } = this.#store;
    if (this.#counts?.position !== position) {
      const sql = "SELECT count(*) AS keys, count(revoked_at_ms) AS revokedKeys FROM minted_key";
      const [counts = { keys: 0, revokedKeys: 0 }] = this.#all<KeyCounts>(sql);
      this.#counts = { ...counts, position };
    }
    const { keys, revokedKeys } = this.#counts;
    return { keys, revokedKeys };
  }

  /**
   * Forgets keys beyond `most` that have expired, those that were never revoked first. If it forgets a
   * revoked one, it remembers that keys which expire no later may be revoked (A1).
   */
  forget(nowMs: number, most: number): void {
    const count = this.#all<{ n: number }>("SELECT count(*) AS n FROM minted_key")[0]?.n ?? 0;
    const forgotten = this.#all<{ expiresAtMs: number; isRevoked: 0 | 1 }>(
      `DELETE FROM minted_key WHERE key_id IN (
         SELECT key_id FROM minted_key WHERE expires_at_ms <= ?
          ORDER BY revoked_at_ms IS NOT NULL, expires_at_ms LIMIT ?
       ) RETURNING expires_at_ms AS expiresAtMs, revoked_at_ms IS NOT NULL AS isRevoked`,
      nowMs,
      Math.max(0, count - most),
    );
    const revoked = forgotten
      .filter(({ isRevoked }) => isRevoked === 1)
      .map(({ expiresAtMs }) => expiresAtMs);
    if (revoked.length > 0)
      writeMeta(this.#sql, "revoked_through_ms", Math.max(this.revokedThroughMs, ...revoked));
  }

  /** Keys that expire no later may have been revoked and forgotten (A1). */
  get revokedThroughMs(): number {
    return readMetaNumber(this.#sql, "revoked_through_ms");
  }

  #all<Row>(statement: string, ...bindings: SqlValue[]): Row[] {
    return this.#sql.all<Row>(statement, ...bindings);
  }
}

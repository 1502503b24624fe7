import type { LedgerHalf } from "../../kernel/capability.ts";
import type { LedgerPart } from "../../kernel/ledger/part.ts";
import type { Caller } from "../../kernel/messages.ts";
import { readMetaNumber, writeMeta } from "../../kernel/meta.ts";
import { method, type Calls } from "../../kernel/method.ts";
import type { Sql } from "../../kernel/ports.ts";
import { ok, refused, type Refusal, type Result } from "../../kernel/refusal.ts";
import type { RevokeCellKey } from "./messages.ts";

const onLedgers = { revoke: method<RevokeCellKey, null>("peer") };

declare module "../../kernel/methods.ts" {
  interface LedgerCalls extends Calls<typeof onLedgers> {}
}

const writes = ["revoke_cell_key"] as const;

declare module "../../kernel/write-points.ts" {
  interface WritePoints extends Record<(typeof writes)[number], true> {}
}

type Key = Pick<Caller, "keyId" | "expiresAtMs">;

declare module "../../kernel/messages.ts" {
  interface LedgerCopies {
    /** The revoked keys of the cell, from the directory (A1). */
    revokedKeys: Key[];
  }
}

export const ledger: LedgerHalf<typeof onLedgers> = {
  writes,
  steps: [
    [
      `CREATE TABLE IF NOT EXISTS revoked_key (
         key_id TEXT NOT NULL PRIMARY KEY,
         expires_at_ms INTEGER NOT NULL
       ) STRICT, WITHOUT ROWID`,
    ],
  ],
  methods: onLedgers,
  make: (part) => {
    const keys = new RevokedKeys(part.ports.sql, part.limits.maxRevokedKeys);
    return {
      parts: { keys },
      handlers: {
        /**
         * Revokes a key of the cell. Every call of a cell is checked here, so the key is refused once the
         * revocation is durable (A1).
         */
        revoke: async (message) => {
          const reply = await part.commits.submit("revoke_cell_key", () => revoke(part, keys, message));
          part.begins.endUnfitWaits();
          return reply;
        },
      },
      hooks: {
        guardCaller: (caller) => keys.refusal(caller),
        resumed: ({ revokedKeys }) => keys.revoke(revokedKeys),
      },
    };
  },
};

function revoke(part: LedgerPart, keys: RevokedKeys, { operator, ...key }: RevokeCellKey): Result<null> {
  const full = part.audit.current.refusal;
  if (full !== undefined) return { ok: false, refusal: full };
  const wasRevoked = keys.has(key) || keys.isForgotten(key);
  part.store.takePosition(part.positions, part.ports.clock.now());
  keys.revoke([key]);
  if (!wasRevoked)
    part.audit.current.append(operator, {
      action: "revoke_key",
      cell: part.cell,
      target: key.keyId,
      before: { is_revoked: false },
      after: { is_revoked: true },
    });
  return ok(null);
}

/** The revoked keys of a cell. They are in memory, because every call reads them. */
class RevokedKeys {
  readonly #sql: Sql;
  readonly #limit: number;
  #ids: ReadonlySet<string>;
  /** Keys that expire no later may have been revoked and forgotten, so all of them are refused (A1). */
  #refusedThroughMs: number;

  constructor(sql: Sql, limit: number) {
    this.#sql = sql;
    this.#limit = limit;
    this.#ids = this.#read();
    this.#refusedThroughMs = readMetaNumber(sql, "refused_through_ms");
  }

  has({ keyId }: Key): boolean {
    return this.#ids.has(keyId);
  }

  isForgotten({ expiresAtMs }: Key): boolean {
    return expiresAtMs <= this.#refusedThroughMs;
  }

  /** Returns why the key of a cell is refused (A1). The directory knows the revoked keys of operators. */
  refusal(caller: Caller): Refusal | undefined {
    if (caller.role !== "cell") return undefined;
    if (this.has(caller))
      return refused("UNAUTHENTICATED", "the key was revoked; use another key", { reason: "KEY_REVOKED" })
        .refusal;
    if (!this.isForgotten(caller)) return undefined;
    return refused("UNAUTHENTICATED", "the key has expired; get a new one", { reason: "KEY_EXPIRED" })
      .refusal;
  }

  /** No clock determines which key is forgotten: it is the one that expires first (A1). */
  revoke(keys: readonly Key[]): void {
    for (const { keyId, expiresAtMs } of keys)
      this.#sql.all(
        "INSERT INTO revoked_key (key_id, expires_at_ms) VALUES (?, ?) ON CONFLICT (key_id) DO NOTHING",
        keyId,
        expiresAtMs,
      );
    const forgotten = this.#sql.all<{ expires_at_ms: number }>(
      `DELETE FROM revoked_key WHERE key_id IN (
         SELECT key_id FROM revoked_key ORDER BY expires_at_ms DESC, key_id LIMIT -1 OFFSET ?
       ) RETURNING expires_at_ms`,
      this.#limit,
    );
    if (forgotten.length > 0) {
      const expired = forgotten.map((row) => row.expires_at_ms);
      this.#refusedThroughMs = Math.max(this.#refusedThroughMs, ...expired);
      writeMeta(this.#sql, "refused_through_ms", this.#refusedThroughMs);
    }
    this.#ids = this.#read();
  }

  #read(): ReadonlySet<string> {
    return new Set(
      this.#sql.all<{ key_id: string }>("SELECT key_id FROM revoked_key").map(({ key_id }) => key_id),
    );
  }
}

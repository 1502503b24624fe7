import type { AuditState } from "../../kernel/audit-trail.ts";
import { durable } from "../../kernel/durable.ts";
import { operate, pointOfRows, refuseWithoutCell } from "../../kernel/directory/checks.ts";
import type { MissingRows } from "../../kernel/directory/hooks.ts";
import type { RestoreDirectory, Snapshot } from "../../kernel/directory/messages.ts";
import type { DirectoryPart } from "../../kernel/directory/part.ts";
import type { Envelope } from "../../kernel/messages.ts";
import { method, type Handlers } from "../../kernel/method.ts";
import { ok, refused, type Refusal } from "../../kernel/refusal.ts";
import type { KeyChange, KeyPage, ListRevokedKeys, MintedKey, RevokedKey } from "./messages.ts";
import { KeyStore } from "./store.ts";

export const methods = {
  recordKey: method<KeyChange, MintedKey>("peer"),
  keyToRevoke: method<Envelope & { keyId: string }, MintedKey | null>("read"),
  listKeys: method<Envelope & { afterPosition: number; limit: number }, KeyPage>("read"),
  revokeKey: method<KeyChange, MintedKey>("peer"),
  revokedKeysOf: method<ListRevokedKeys, RevokedKey[]>("read"),
  isRevoked: method<Envelope & RevokedKey, boolean>("always"),
};

/** What describes the minted keys, and which of them are revoked (A1). */
export class Keys {
  readonly #part: DirectoryPart;
  readonly #store: KeyStore;
  readonly handlers: Handlers<typeof methods>;

  constructor(part: DirectoryPart) {
    this.#part = part;
    this.#store = new KeyStore(part);
    this.handlers = handlersOf(part, this.#store);
  }

  counts(): { keys: number; revokedKeys: number } {
    return this.#store.counts();
  }

  snapshot(): Pick<Snapshot, "revokedKeys" | "revokedThroughMs"> {
    // No clock determines which keys are left out: a clock that is ahead for some time would let revoked
    // keys in (A1).
    const { maxRevokedKeys } = this.#part.limits;
    const revoked = this.#store.revoked(maxRevokedKeys + 1);
    return {
      revokedKeys: revoked.slice(0, maxRevokedKeys).map(({ keyId }) => keyId),
      revokedThroughMs: Math.max(this.#store.revokedThroughMs, revoked[maxRevokedKeys]?.expiresAtMs ?? 0),
    };
  }

  /** Compares copies of keys with those that are left (H8). */
  missing(copies: RestoreDirectory | undefined): MissingRows {
    const { limits, ports } = this.#part;
    const store = this.#store;
    const { keys = [], isLast = false } = copies ?? {};
    const missing = keys.filter(({ keyId }) => store.get(keyId) === undefined);
    const revocations = keys.filter(
      (copy) => copy.revokedAtMs !== null && (store.get(copy.keyId)?.revokedAtMs ?? null) === null,
    );
    return {
      told: { keys: missing.length, revocations: revocations.length },
      restore: () => {
        for (const copy of missing) store.put(copy);
        for (const { keyId, revokedAtMs } of revocations) {
          const known = store.get(keyId);
          if (known?.revokedAtMs === null) store.put({ ...known, revokedAtMs });
        }
        if (isLast) store.forget(ports.clock.now(), limits.maxKeys);
      },
    };
  }
}

/** What carries out the methods, after their checks. */
function handlersOf(part: DirectoryPart, keys: KeyStore): Handlers<typeof methods> {
  const { limits, ports } = part;

  /** Returns why one more revoked key has no room. A key that is already revoked needs no room. */
  function refuseIfFull(key: MintedKey | null): Refusal | undefined {
    if (key !== null && key.revokedAtMs !== null) return undefined;
    const revoked = keys.countRevoked(ports.clock.now());
    if (revoked < limits.maxRevokedKeys) return undefined;
    return refused(
      "RESOURCE_EXHAUSTED",
      `${limits.maxRevokedKeys} revoked keys have not expired yet, which is the limit; ` +
        "rotate the signing secret",
    ).refusal;
  }

  /** Returns why one more key has no room. Expired keys can be forgotten, so they take no room. */
  function refuseIfNoRoom(): Refusal | undefined {
    const { maxKeys } = limits;
    if (keys.count(ports.clock.now()) < maxKeys) return undefined;
    return refused(
      "RESOURCE_EXHAUSTED",
      `${maxKeys} keys have not expired yet, which is the limit (LEASEHOLD_MAX_KEYS)`,
    ).refusal;
  }

  function putKey(key: MintedKey): void {
    keys.put(key);
    keys.forget(ports.clock.now(), limits.maxKeys);
  }

  return {
    /** Stores what describes a minted key, without the key itself. */
    recordKey: (message) =>
      operate(part, "record_key", message, () => {
        const { key } = message;
        const unfit = key.cell === null ? undefined : refuseWithoutCell(part, key.cell);
        if (unfit !== undefined) return { ok: false, refusal: unfit };
        // The message may arrive twice, and the key may be revoked in between.
        const stored = keys.get(key.keyId);
        if (stored !== undefined) return ok(stored);
        const full = refuseIfNoRoom();
        if (full !== undefined) return { ok: false, refusal: full };
        putKey(key);
        part.audit.current.append(message.operator, {
          action: "mint_key",
          cell: key.cell,
          target: key.keyId,
          before: null,
          after: keyState(key),
        });
        return ok(key);
      }),
    /**
     * Returns the stored description of a key that is to be revoked, or null for a key that was minted
     * elsewhere. Refuses if there is no room for one more revoked key, or for the audit entry (O3), before
     * the revocation is acknowledged anywhere.
     */
    keyToRevoke: (message) => {
      const key = keys.get(message.keyId) ?? null;
      const full =
        part.audit.current.refusal ?? refuseIfFull(key) ?? (key === null ? refuseIfNoRoom() : undefined);
      return full === undefined ? ok(key) : { ok: false, refusal: full };
    },
    /**
     * Lists keys in the order of their last changes, oldest first, because only this order can be continued
     * with a position.
     */
    listKeys: (message) => {
      const rows = keys.after(message.afterPosition, message.limit + 1);
      return ok({
        point: pointOfRows(part),
        keys: rows.slice(0, message.limit),
        more: rows.length > message.limit,
      });
    },
    revokedKeysOf: (message) => ok(keys.revokedOf(message.cell, message.limit)),
    /**
     * Revokes a key. Idempotent. `key` describes the key, so that a key that was minted elsewhere can also be
     * revoked.
     */
    revokeKey: (message) =>
      operate(part, "revoke_key", message, () => {
        const known = keys.get(message.key.keyId);
        const stored = known ?? message.key;
        // For a key that was minted elsewhere, the cell is only what the caller says, so a later call may
        // correct it.
        if (stored.revokedAtMs !== null && stored.cell === message.key.cell) return ok(stored);
        const full = refuseIfFull(stored) ?? (known ? undefined : refuseIfNoRoom());
        if (full !== undefined) return { ok: false, refusal: full };
        const key = {
          ...stored,
          role: message.key.role,
          cell: message.key.cell,
          revokedAtMs: stored.revokedAtMs ?? part.ports.clock.now(),
        };
        putKey(key);
        part.audit.current.append(message.operator, {
          action: "revoke_key",
          cell: key.cell,
          target: key.keyId,
          before: known === undefined ? null : keyState(known),
          after: keyState(key),
        });
        return ok(key);
      }),
    /** Returns whether a key is revoked, or may be (A1), according to the rows that are left. */
    isRevoked: async (message) => {
      const { keyId, expiresAtMs } = message;
      const isListed = (keys.get(keyId)?.revokedAtMs ?? null) !== null;
      return durable(part, ok(isListed || expiresAtMs <= keys.revokedThroughMs));
    },
  };
}

/** What an audit entry says of a key (O1). */
const keyState = ({ role, cell, note, expiresAtMs, revokedAtMs }: MintedKey): AuditState => ({
  role,
  cell_id: cell,
  note,
  expires_at_ms: expiresAtMs,
  is_revoked: revokedAtMs !== null,
});

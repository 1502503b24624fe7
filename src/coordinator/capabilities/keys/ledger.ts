import type { LedgerHalf } from "../../kernel/capability.ts";
import type { LedgerPart } from "../../kernel/ledger/part.ts";
import { method, type Calls } from "../../kernel/method.ts";
import { ok, type Result } from "../../kernel/refusal.ts";
import type { RevokeCellKey } from "./messages.ts";

const onLedgers = { revoke: method<RevokeCellKey, null>("peer") };

declare module "../../kernel/methods.ts" {
  interface LedgerCalls extends Calls<typeof onLedgers> {}
}

const writes = ["revoke_cell_key"] as const;

declare module "../../kernel/write-points.ts" {
  interface WritePoints extends Record<(typeof writes)[number], true> {}
}

export const ledger: LedgerHalf<typeof onLedgers> = {
  writes,
  methods: onLedgers,
  make: (part) => ({
    handlers: {
      /**
       * Revokes a key of the cell. Every call of a cell is checked here, so the key is refused once the
       * revocation is durable (A1).
       */
      revoke: async (message) => {
        const reply = await part.commits.submit("revoke_cell_key", () => revoke(part, message));
        part.begins.endUnfitWaits();
        return reply;
      },
    },
  }),
};

function revoke(part: LedgerPart, { operator, keyId, expiresAtMs }: RevokeCellKey): Result<null> {
  const full = part.audit.current.refusal;
  if (full !== undefined) return { ok: false, refusal: full };
  const wasRevoked = part.store.isRevoked(keyId) || expiresAtMs <= part.store.refusedThroughMs;
  part.store.takePosition(part.positions, part.ports.clock.now());
  part.store.revoke([{ keyId, expiresAtMs }], part.limits.maxRevokedKeys);
  if (!wasRevoked)
    part.audit.current.append(operator, {
      action: "revoke_key",
      cell: part.cell,
      target: keyId,
      before: { is_revoked: false },
      after: { is_revoked: true },
    });
  return ok(null);
}

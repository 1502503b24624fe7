import type { Capability, LedgerHalf } from "../../kernel/capability.ts";
import { durable } from "../../kernel/durable.ts";
import type { LedgerPart } from "../../kernel/ledger/part.ts";
import { method, type Calls } from "../../kernel/method.ts";
import { ok } from "../../kernel/refusal.ts";
import type { OpenLease, Pull, PullAnswer } from "./messages.ts";

const methods = { pull: method<Pull, PullAnswer>("peer", { sender: () => "the cron" }) };

declare module "../../kernel/methods.ts" {
  interface LedgerCalls extends Calls<typeof methods> {}
}

const ledger: LedgerHalf<typeof methods> = {
  methods,
  make: (part) => ({ handlers: { pull: (message) => durable(part, ok(pull(part, message))) } }),
};

function pull(part: LedgerPart, message: Pull): PullAnswer {
  const now = part.ports.clock.now();
  const { after, limit } = message;
  const rows = part.store.granted(after, limit + 1, message.through ?? undefined);
  const page = rows.slice(0, limit);
  const through = rows.length > limit ? (page.at(-1)?.position ?? after) : message.through;
  const open = new Set(page.map(({ position }) => position));
  const known = new Map(message.has);
  const lacking = page.filter(({ position, lease }) => known.get(position) !== lease);
  return {
    point: part.instances.pointOfRows(part.positions.last) ?? null,
    granted: lacking.map((row): OpenLease => {
      const { lease, createdAtMs, counts } = part.store.leaseOf(row, now);
      return { lease, createdPosition: row.position, createdAtMs, counts };
    }),
    decided: [...known.keys()].filter(
      (position) => (through === null || position <= through) && !open.has(position),
    ),
    through,
    ...part.sightings.current.remembered(),
  };
}

/** The cron copies the open leases of all cells to D1 (S4). */
export const projection = { name: "projection", ledger } as const satisfies Capability;

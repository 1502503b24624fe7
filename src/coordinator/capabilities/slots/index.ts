import type { Capability, DirectoryHalf } from "../../kernel/capability.ts";
import { refuseWithoutCell } from "../../kernel/directory/checks.ts";
import { method, type Calls } from "../../kernel/method.ts";
import { VerificationSlots, type VerificationSlot, type VerificationSlotRequest } from "./directory.ts";

declare module "../../kernel/refusal.ts" {
  interface Reasons {
    NO_VERIFICATION_SLOT: true;
  }
}

const methods = {
  takeSlot: method<VerificationSlotRequest, VerificationSlot>("peer"),
  releaseSlot: method<VerificationSlotRequest, boolean>("peer"),
};

declare module "../../kernel/methods.ts" {
  interface DirectoryCalls extends Calls<typeof methods> {}
}

const writes = ["take_slot", "release_slot"] as const;

declare module "../../kernel/write-points.ts" {
  interface WritePoints extends Record<(typeof writes)[number], true> {}
}

declare module "../../kernel/metrics/messages.ts" {
  interface DirectoryMetrics {
    /** The cells that have a verification slot, and how long they have had it. */
    verificationSlots: { cell: string; heldMs: number }[];
    /** The cells that wait for a verification slot. */
    verificationWaiting: number;
  }
}

const directory: DirectoryHalf<typeof methods> = {
  writes,
  steps: [
    [
      // The verification slots that are taken, at most `verificationSlots` of them.
      `CREATE TABLE IF NOT EXISTS verification_slot (
         cell TEXT NOT NULL PRIMARY KEY,
         uuid TEXT NOT NULL,
         taken_at_ms INTEGER NOT NULL,
         expires_at_ms INTEGER NOT NULL
       ) STRICT, WITHOUT ROWID`,
      // The queue for verification slots: at most one place for each cell. Smaller places come first.
      `CREATE TABLE IF NOT EXISTS verification_place (
         cell TEXT NOT NULL PRIMARY KEY,
         place INTEGER NOT NULL,
         ask_by_ms INTEGER NOT NULL
       ) STRICT, WITHOUT ROWID`,
    ],
  ],
  methods,
  make: (part) => {
    const slots = new VerificationSlots(part);
    return {
      handlers: {
        takeSlot: (message) => {
          // The queue has one place for each registered cell, so `maxCells` bounds it.
          const unfit = refuseWithoutCell(part, message.cell);
          return unfit === undefined ? slots.take(message) : { ok: false, refusal: unfit };
        },
        /** Releases a slot. Idempotent. Returns whether the run had one. */
        releaseSlot: (message) => slots.release(message),
      },
      hooks: { cellRemoved: (cell) => slots.forget(cell), metrics: () => slots.counts() },
    };
  },
};

/** Limits how many cells verify at the same time (A3). */
export const slots = { name: "slots", directory } as const satisfies Capability;

import type { Capability, DirectoryHalf } from "../../kernel/capability.ts";
import { durable } from "../../kernel/durable.ts";
import { change, operate } from "../../kernel/directory/checks.ts";
import type { Envelope } from "../../kernel/messages.ts";
import { method, type Calls } from "../../kernel/method.ts";
import { ok } from "../../kernel/refusal.ts";
import { changeTypes, missingTypes, setTypes, typesIn, useTypes } from "./directory.ts";
import type { ChangeTypes, CopiedTypes, DeclaredTypes, KnownTypes, TypeSet, UseTypes } from "./messages.ts";

const methods = {
  types: method<Envelope, KnownTypes>("always"),
  changeTypes: method<ChangeTypes, DeclaredTypes>("peer"),
  useTypes: method<UseTypes, DeclaredTypes>("peer"),
};

declare module "../../kernel/methods.ts" {
  interface DirectoryCalls extends Calls<typeof methods> {}
}

const writes = ["change_types", "use_types"] as const;

declare module "../../kernel/write-points.ts" {
  interface WritePoints extends Record<(typeof writes)[number], true> {}
}

declare module "../../kernel/directory/messages.ts" {
  interface SnapshotRequest extends Partial<CopiedTypes> {
    /** The position of the set of types that the caller has. */
    typesPosition?: number;
  }
  interface Snapshot {
    /** Null: the caller has the current set. */
    types: DeclaredTypes | null;
  }
  interface RestoreDirectory {
    /** Null: there is no copy, or it comes with another page. */
    types: TypeSet | null;
  }
  interface DirectoryReconciliation {
    /** The names of types that were missing or different, or not marked as in use. */
    types: string[];
  }
}

const directory: DirectoryHalf<typeof methods> = {
  writes,
  methods,
  make: (part) => ({
    handlers: {
      /**
       * Returns the set of types. A type in use never changes (T2), so what is left of these after a loss is
       * still true. Nothing else is (T6).
       */
      types: () => {
        const types = typesIn(part);
        const isLost = part.standing.current.stopped !== undefined;
        const entries = types.entries.filter(({ isInUse }) => isInUse || !isLost);
        return durable(part, ok({ ...types, entries, isComplete: !isLost }));
      },
      /** Replaces the set of types, based on the one that the operator has read (T3). */
      changeTypes: (message) => operate(part, "change_types", message, () => changeTypes(part, message)),
      /** Marks types as in use (T2). Idempotent. */
      useTypes: (message) => change(part, "use_types", message, () => useTypes(part, message)),
    },
    hooks: {
      // D1 only gets sets that were durable here, so a set that is older than its copy is from before a loss.
      guardCopies: ({ copiedAt = 0 }: Envelope & Partial<CopiedTypes>) =>
        copiedAt > typesIn(part).position
          ? part.standing.current.behind("the copy of the types in D1")
          : undefined,
      snapshot: ({ typesPosition }) => {
        const types = typesIn(part);
        return { types: types.position === typesPosition ? null : types };
      },
      missing: (copies) => missingTypes(part, copies?.types ?? null),
      // Any type may have come into use after the copy was made (T6). The position is above all that were
      // seen, so D1 takes this set over.
      resumed: () =>
        void setTypes(
          part,
          typesIn(part).entries.map((entry) => ({ ...entry, isInUse: true })),
        ),
    },
  }),
};

/** The types of names and sources that a deployment declares (T1). */
export const types = { name: "types", directory } as const satisfies Capability;

// What operators start, and what takes longer than one call (A5 to A7). Transfers and removals have rules of
// their own.

/**
 * `growth`: the deployment gets more shards. `restore`: a backup is restored. `reconciliation`: a shard has
 * accepted that it went back in time, and cells verify.
 */
export const operationKinds = ["growth", "restore", "reconciliation"] as const;

export type OperationKind = (typeof operationKinds)[number];

/** An operation that runs, as the directory stores it. */
export interface Operation {
  /** Chosen by the caller, who finds the same row again. A reconciliation has the id of its part. */
  id: string;
  kind: OperationKind;
  /** What it is about: `shards`, `deployment`, or a part such as `shard-3`. */
  about: string;
  startedAtMs: number;
  /** The key of the operator who started it. */
  startedBy: string;
  /** The directory's position of the last call that began it. Who ends it names that position (A6). */
  position: number;
}

/** All operations but a growth, which has a record of its own (G1). */
export interface OperationSet {
  /** The directory's position of the last change. 0: there never was an operation. */
  position: number;
  operations: readonly Operation[];
}

/** Which operations keep one of a kind from starting, while they run (A5). */
export const blockedBy: Readonly<Record<OperationKind, readonly OperationKind[]>> = {
  growth: ["growth", "restore", "reconciliation"],
  restore: ["growth", "restore"],
  // A loss can't be refused.
  reconciliation: [],
};

/** Returns one of the operations that keep another one from starting. The same one, begun again, does not. */
export const inTheWayOf = (
  { kind, id }: Pick<Operation, "kind" | "id">,
  running: readonly Operation[],
): Operation | undefined =>
  running.find((other) => blockedBy[kind].includes(other.kind) && !(other.kind === kind && other.id === id));

/** Says that an operation runs. */
export const describeRunning = ({ kind, about }: Pick<Operation, "kind" | "about">): string =>
  ({
    growth: "the deployment is getting more shards",
    restore: "a backup is being restored",
    reconciliation: `\`${about}\` is being reconciled`,
  })[kind];

/** How an operator ends an operation. */
export const howToEnd = ({ kind, id, about }: Pick<Operation, "kind" | "id" | "about">): string =>
  ({
    growth: "wait for it, or abort it before its cut (`leasehold shards abort`)",
    restore: `wait for it, go on with it, or give it up (\`leasehold operations end ${id}\`)`,
    reconciliation: `let every cell verify, and finish the part (\`leasehold parts finish ${about}\`)`,
  })[kind];

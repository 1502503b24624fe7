/** The calls of a cell to the coordinator. */
export type Operation = "begin" | "commit" | "rollback" | "get" | "other";

/**
 * The points where a cell can die. `sent`: the kernel has the bytes, and no answer has arrived. `answered`:
 * the coordinator has answered, and the cell has not read the answer.
 */
export type Point =
  | `${"before" | "after"} ${"row" | "fence" | "remove"}`
  | `before ${Operation}`
  | `${Operation} sent`
  | `${Operation} answered`
  | "after write"
  | "row before begin"
  | "before COMMIT"
  | "COMMIT sent"
  | "after COMMIT"
  | "after undo"
  | "after look";

/** The required result of the local change. `either`: only the database knows. */
export type LocalOutcome = "saved" | "undone" | "either";

export type Points = Partial<Record<Point, LocalOutcome>>;

const each = (outcome: LocalOutcome, ...points: Point[]): Points =>
  Object.fromEntries(points.map((point) => [point, outcome]));

const afterCommit = each(
  "saved",
  "after COMMIT",
  "after look",
  "before commit",
  "commit sent",
  "commit answered",
  "before remove",
  "after remove",
);

/** The order in a transaction: local writes, begin and lease row at the same time, COMMIT, commit. */
export const inTransaction: Points = {
  ...each(
    "undone",
    "after write",
    "before begin",
    "begin sent",
    "begin answered",
    "before row",
    "row before begin",
    "before COMMIT",
  ),
  ...each("either", "COMMIT sent"),
  ...afterCommit,
};

/** The order in a pre-flight change: begin, lease row, local writes, COMMIT, commit. */
export const preflight: Points = {
  ...each(
    "undone",
    "before begin",
    "begin sent",
    "begin answered",
    "before row",
    "after row",
    "after write",
    "before COMMIT",
  ),
  ...each("either", "COMMIT sent"),
  ...afterCommit,
};

/**
 * The order with a deferred deletion: local writes and lease row, COMMIT, a check that the row exists, begin,
 * commit.
 */
export const deferred: Points = {
  ...each("undone", "after write", "before row", "after row", "before COMMIT"),
  ...each("either", "COMMIT sent"),
  ...each("saved", "after COMMIT", "after look", "before begin", "begin sent", "begin answered"),
  ...each("saved", "before commit", "commit sent", "commit answered", "before remove", "after remove"),
};

/** After a failure between the begin and the end of COMMIT. */
export const undoing: Points = each(
  "undone",
  "after undo",
  "before rollback",
  "rollback sent",
  "rollback answered",
);

/**
 * The points of reconciliation: for a lease without a row, a lease with a row, a row whose lease is decided,
 * and a deferred deletion.
 */
export const givingUp: Points = each(
  "undone",
  "before fence",
  "after fence",
  "before rollback",
  "rollback sent",
  "rollback answered",
);
export const finishing: Points = each(
  "saved",
  "before commit",
  "commit sent",
  "commit answered",
  "before remove",
  "after remove",
);
export const tidying: Points = each("saved", "before get", "get answered", "before remove", "after remove");
export const catchingUp: Points = {
  ...each("saved", "before begin", "begin sent", "begin answered"),
  ...finishing,
};

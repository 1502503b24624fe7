/** The calls of a cell that a point can be about. */
export type Operation = "begin" | "commit" | "rollback" | "get" | "other";

/**
 * Where a cell can die. `sent`: the bytes are with the kernel, and nothing has come back. `answered`: the coordinator has answered, and the cell has not
 * heard it.
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

/** What must have become of the local change: all of it, none of it, or one of these, because only the database can know. */
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

/** Local writes, begin and the outstanding row at the same time, COMMIT, commit. */
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

/** Begin, the outstanding row, local writes, COMMIT, commit. */
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

/** Local writes and the outstanding row, COMMIT, a look whether it is there, begin, commit. */
export const deferred: Points = {
  ...each("undone", "after write", "before row", "after row", "before COMMIT"),
  ...each("either", "COMMIT sent"),
  ...each("saved", "after COMMIT", "after look", "before begin", "begin sent", "begin answered"),
  ...each("saved", "before commit", "commit sent", "commit answered", "before remove", "after remove"),
};

/** Once something went wrong between the begin and the end of COMMIT. */
export const undoing: Points = each(
  "undone",
  "after undo",
  "before rollback",
  "rollback sent",
  "rollback answered",
);

/** Where reconciliation dies: over a lease without its row, with it, over a row whose lease is decided, over a deletion that was put off. */
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

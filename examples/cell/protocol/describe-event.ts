import type { CellEvent } from "leasehold/cell";

/** What the cell says that no caller is told. */
export function describeEvent(event: CellEvent): string {
  switch (event.kind) {
    case "commit_postponed":
      return `the commit of a lease is left to reconciliation: ${event.error}`;
    case "rollback_postponed":
      return `the rollback of a lease is left to reconciliation: ${event.error}`;
    case "removal_postponed":
      return `the row of a lease is left to reconciliation: ${event.error}`;
    case "release_postponed":
      return `a deletion is left to reconciliation: ${event.error}`;
    case "contradicted":
      return "ALARM: rows were saved, and their lease was rolled back. Another cell may have their names";
    case "not_owned":
      return `${event.conflicts.map(({ bucket }) => bucket.value).join(", ")}: was to be given up, and is not this row's. Rows and claims had differed`;
    case "reconcile_finding":
      return event.finding.kind === "contradicted"
        ? "ALARM: reconciliation found saved rows whose lease was rolled back"
        : `reconciliation could not ${event.finding.step} a lease: ${event.finding.error}`;
  }
}

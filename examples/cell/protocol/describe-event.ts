import type { CellEvent } from "leasehold/cell";

/** Describes the events of a cell that no caller gets as an error. */
export function describeEvent(event: CellEvent): string {
  switch (event.kind) {
    case "commit_postponed":
      return `reconciliation must commit a lease later: ${event.error}`;
    case "rollback_postponed":
      return `reconciliation must roll a lease back later: ${event.error}`;
    case "removal_postponed":
      return `reconciliation must delete the row of a lease later: ${event.error}`;
    case "release_postponed":
      return `reconciliation must release the names of a deletion later: ${event.error}`;
    case "begin_refused":
      return `the coordinator refuses what this cell sends: ${event.error}`;
    case "types_differ":
      return `the types of this cell are not those of the deployment: ${event.differences.join("; ")}`;
    case "history_not_saved":
      return `what the cell has seen of its ledger must be stored later: ${event.error}`;
    case "contradicted":
      return "ALARM: rows were saved, but their lease was rolled back. Another cell may take their names";
    case "not_owned":
      return (
        "the claim to destroy did not belong to this row, so rows and claims disagreed: " +
        event.conflicts.map(({ bucket }) => bucket.value).join(", ")
      );
    case "transaction_ended":
      return (
        "a body ended its own transaction, so these rows may be saved without their claims: " +
        event.sources.map(({ type, id }) => `${type} ${id}`).join(", ")
      );
    case "reconcile_finding":
      return event.finding.kind === "contradicted"
        ? "ALARM: reconciliation found saved rows whose lease was rolled back"
        : `reconciliation could not ${event.finding.step} a lease: ${event.finding.error}`;
  }
}

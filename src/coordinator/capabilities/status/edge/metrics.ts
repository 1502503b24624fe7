import { familiesOf, gauge, info, secondsOf } from "../../metrics/edge/family.ts";
import { driftKinds } from "../status.ts";

/** What the cell has not reported is left out, because 0 would say that all is well. */
export const families = familiesOf("ledger", "leasehold_exchanges", {
  leasehold_cell_reported_timestamp_seconds: gauge(
    "When the cell last reported its status, since 1970. Left out if it never has.",
    ({ reported }) => secondsOf(reported?.reportedAtMs),
  ),
  leasehold_cell_reconciled_timestamp_seconds: gauge(
    "When the last reconciliation that the cell reported as done has ended, since 1970. Left out if " +
      "there is none.",
    ({ reported }) => secondsOf(reported?.reconciliation?.lastDoneAtMs),
  ),
  leasehold_cell_verified_timestamp_seconds: gauge(
    "When the last verification that the cell reported as done has ended, since 1970. Left out if " +
      "there is none.",
    ({ reported }) => secondsOf(reported?.verification?.lastDoneAtMs),
  ),
  leasehold_cell_drift: gauge(
    "Differences that the last verification of the cell has found, repaired ones included. Kinds " +
      "overlap, so they don't add up.",
    ({ reported }) => {
      const counts = reported?.verification?.counts;
      return counts === undefined ? [] : driftKinds.map((kind) => [{ kind }, counts[kind] ?? 0]);
    },
    "kind",
  ),
  leasehold_cell_stale_leases: gauge(
    "Stale leases that the last reconciliation of the cell could not decide.",
    ({ reported }) => reported?.reconciliation?.staleLeases,
  ),
  leasehold_cell_sdk: info(
    "The code that sent the last report of the cell.",
    ({ reported }) => (reported === null ? [] : [[{ ...reported.sdk }, 1]]),
    "name",
    "version",
  ),
});

import { familiesOf, gauge, secondsOf } from "../../metrics/edge/family.ts";

export const families = familiesOf("ledger", "leasehold_exchanges", {
  leasehold_transfers_prepared: gauge(
    "Transfers to the cell that are neither cut nor aborted.",
    (of) => of.preparedTransfers,
  ),
  leasehold_transfer_oldest_age_seconds: gauge(
    "The age of the oldest of these transfers. 0 if there is none.",
    (of) => secondsOf(of.oldestTransferMs),
  ),
});

import { familiesOf, gauge } from "../../metrics/edge/family.ts";

export const families = familiesOf("directory", "leasehold_cron_end_timestamp_seconds", {
  leasehold_verification_slots_taken: gauge(
    "Cells that have a verification slot.",
    (of) => of.verificationSlots.length,
  ),
  leasehold_verification_slot_held_seconds: gauge(
    "How long a cell has had its verification slot. Left out for cells without one.",
    (of) => of.verificationSlots.map(({ cell, heldMs }) => [{ cell }, heldMs / 1_000]),
    "cell",
  ),
  leasehold_verification_waiting: gauge(
    "Cells that wait for a verification slot.",
    (of) => of.verificationWaiting,
  ),
});

import { counter, familiesOf, since } from "../../metrics/edge/family.ts";

export const families = familiesOf("shard", "leasehold_waiting_reads", {
  leasehold_record_reads: counter(
    `Messages for lists, exports and digests of records, ${since}.`,
    (of) => of.recordReads,
  ),
});

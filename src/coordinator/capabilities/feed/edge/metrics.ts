import { counter, familiesOf, since } from "../../metrics/edge/family.ts";

export const families = familiesOf("shard", "leasehold_waiting_reads", {
  leasehold_change_reads: counter(
    `Messages in which consumers of the change feed asked what happened, ${since}.`,
    (of) => of.changeReads,
  ),
});

import { counter, familiesOf, since } from "../../metrics/edge/family.ts";

export const families = familiesOf("shard", "leasehold_waiting_reads", {
  leasehold_reports: counter(`Reports that routers asked for, ${since}.`, (of) => of.reports),
});

import type { PartMetrics } from "../../../kernel/metrics/messages.ts";
import { familiesOf, gauge } from "../../metrics/edge/family.ts";
import type { PartState } from "../messages.ts";

const is = (state: PartState) => (part: PartMetrics) => Number(part.state === state);

export const families = familiesOf("part", "leasehold_object_size_bytes", {
  leasehold_history_lost: gauge(
    "1 while the part has gone back in time and refuses everything, until an operator reconciles it.",
    is("lost"),
  ),
  leasehold_reconciling: gauge(
    "1 while a shard that has gone back in time is reconciled.",
    is("reconciling"),
  ),
});

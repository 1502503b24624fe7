import { familiesOf, gauge, secondsOf, type Sources } from "../../metrics/edge/family.ts";
import type { ScrubMetrics } from "../messages.ts";

/** The directory is not scrubbed. */
const ofScrub =
  (value: (of: ScrubMetrics) => number | null) =>
  (part: Sources["part"]): number | null =>
    "scrub" in part ? value(part.scrub) : null;

/** Before the first pass has ended, 0 rows would say that all is well. */
const ofLastPass = (value: (of: ScrubMetrics) => number | null) =>
  ofScrub((of) => (of.endedAtMs === null ? null : value(of)));

export const families = familiesOf("part", "leasehold_object_size_bytes", {
  leasehold_scrub_findings: gauge(
    "Rows of the part that break a rule, as the last scrub or the running one has found: the larger.",
    ofScrub(({ findings }) => findings),
  ),
  leasehold_scrub_end_timestamp_seconds: gauge(
    "When the last scrub of the part ended, since 1970. Left out before the first one.",
    ofLastPass(({ endedAtMs }) => secondsOf(endedAtMs)),
  ),
  leasehold_scrub_rows: gauge(
    "The rows that the last scrub of the part has checked.",
    ofLastPass(({ rows }) => rows),
  ),
  leasehold_scrub_unchecked: gauge(
    "Holds and leases that the last scrub could not compare, because the other part did not answer.",
    ofLastPass(({ unchecked }) => unchecked),
  ),
});

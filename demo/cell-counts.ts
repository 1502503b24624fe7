import type { Refused } from "../src/users/client/answer.ts";

export const conflictKinds = ["taken", "leased", "not_owner", "absent", "mismatch"] as const;

/** Counts what one cell did, across all restarts of its process. */
export class CellCounts {
  leasesGranted = 0;
  creates = 0;
  destroys = 0;
  replaces = 0;
  committed = 0;
  rolledBack = 0;
  refused = 0;
  localFailures = 0;
  unknown = 0;
  /** The next five counters count names. The counters above count leases and ops. */
  lost = 0;
  destroyed = 0;
  renamed = 0;
  recased = 0;
  wonLater = 0;
  readonly conflicts = new Map<string, number>();
  /** Violations of the protocol. Any entry fails the demo. */
  readonly problems: string[] = [];

  refusal({ conflicts }: Refused): void {
    this.refused += 1;
    for (const { kind } of conflicts) this.conflicts.set(kind, (this.conflicts.get(kind) ?? 0) + 1);
  }
}

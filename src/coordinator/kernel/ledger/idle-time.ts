import type { Lease } from "../messages.ts";

/**
 * Returns how long nobody has said that work on a lease goes on, in milliseconds: the time since its grant,
 * or since its last renewal (C8). This time decides whether the lease is stale.
 */
export const idleMsOf = ({
  ageMs,
  createdAtMs,
  renewedAtMs,
}: Pick<Lease, "ageMs" | "createdAtMs" | "renewedAtMs">): number =>
  renewedAtMs === undefined ? ageMs : Math.max(0, ageMs - Math.max(0, renewedAtMs - createdAtMs));

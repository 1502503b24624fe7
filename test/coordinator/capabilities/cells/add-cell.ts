import type { Cluster } from "../../../support/cluster.ts";

/** Registers a cell. */
export const addCell = (c: Cluster, cell: string) =>
  c.clock.runUntil(
    c.directory.object.addCell({
      ...c.envelope,
      cell,
      name: `cell-${cell}`,
      address: `https://cell-${cell}.example`,
      locationHint: "weur",
    }),
  );

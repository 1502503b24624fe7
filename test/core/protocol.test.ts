import { protocolSuite, type TestObjects } from "../suites/protocol.ts";
import { Cluster } from "../support/cluster.ts";

protocolSuite("the core over node:sqlite", async (): Promise<TestObjects> => {
  const cluster = await Cluster.start();
  return {
    envelope: cluster.envelope,
    uuid: () => cluster.uuid(),
    ledger: (cell) => cluster.ledger(cell).object,
    shard: (index) => cluster.shard(index).object,
    runUntil: (work) => cluster.clock.runUntil(work),
    restart: async () => {
      for (const node of cluster.nodes) node.restart();
    },
    holds: async () => cluster.holds(),
    claims: async () => cluster.claims(),
  };
});

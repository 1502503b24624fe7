import type { Bucket, Client } from "../src/client/index.ts";
import type { CellFacts, Facts } from "./check.ts";
import { claimsOf } from "./entry.ts";
import type { Progress } from "./progress.ts";
import { listRecords, lookUpAll } from "./records.ts";
import type { Story } from "./scenario.ts";
import { thousands } from "./table.ts";
import { cellIds, type CellId, type World } from "./world.ts";

/** Asks everybody about everything: the router's view of every name, the listing of every record, both cells' own databases. */
export async function gatherFacts(world: World, story: Story, progress: Progress): Promise<Facts> {
  // A group may have been renamed to what was wanted as a person's name, so both types are asked about wherever both can be.
  const asked = world.plan.names.flatMap(({ name }): Bucket[] => [
    { type: "ROUTES", value: name },
    ...(name.includes("/") ? [] : [{ type: "USERNAMES" as const, value: name }]),
  ]);
  let done = 0;
  progress.set(() => `checking: ${thousands(done)} of ${thousands(asked.length)} names looked up`);
  const found = await lookUpAll(world.connect("router"), asked, (count) => (done = count));
  progress.set(() => "checking: listing the records of both cells");
  const cells: CellFacts[] = [];
  for (const id of cellIds) cells.push(await cellFacts(world, story, id));
  const problems = [
    ...world.problems,
    ...world.witness.violations,
    ...cellIds.flatMap((id) => world.tallies[id].problems),
  ];
  return { asked, found, cells, problems };
}

async function cellFacts(world: World, story: Story, id: CellId): Promise<CellFacts> {
  const client = world.connect(id);
  const { database } = story.cells[id];
  return {
    cell: id,
    claims: database.entries().flatMap(claimsOf),
    records: [
      ...(await listRecords(client, "RAILS_TABLE_ROUTES")),
      ...(await listRecords(client, "RAILS_TABLE_USERS")),
    ],
    outstandingHere: (await database.list({ afterUuid: "", limit: 1_000 })).map(({ uuid }) => uuid),
    outstandingThere: await outstandingThere(client),
  };
}

const outstandingThere = async ({ leases }: Client): Promise<string[]> =>
  (await leases.list({ pageSize: 100 }).all()).map(({ uuid }) => uuid);

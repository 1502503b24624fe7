import type { Bucket } from "../src/cell/remote-leases.ts";
import { HttpLeases } from "../src/cell/remote-leases.ts";
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
  const asked: Bucket[] = world.plan.names.flatMap(({ name }) => [
    { type: "ROUTES", value: name },
    ...(name.includes("/") ? [] : [{ type: "USERNAMES", value: name }]),
  ]);
  let done = 0;
  progress.set(() => `checking: ${thousands(done)} of ${thousands(asked.length)} names looked up`);
  const found = await lookUpAll(world.connect("router"), asked, (count) => (done = count));
  progress.set(() => "checking: listing the records of both cells");
  const cells: CellFacts[] = [];
  for (const id of cellIds) cells.push(await cellFacts(world, story, id));
  const problems = [...world.problems, ...world.witness.violations, ...cellIds.flatMap((id) => world.tallies[id].problems)];
  return { asked, found, cells, problems };
}

async function cellFacts(world: World, story: Story, id: CellId): Promise<CellFacts> {
  const connection = world.connect(id);
  const { database } = story.cells[id];
  return {
    cell: id,
    claims: database.entries().flatMap(claimsOf),
    records: [...(await listRecords(connection, id, "RAILS_TABLE_ROUTES")), ...(await listRecords(connection, id, "RAILS_TABLE_USERS"))],
    outstandingHere: (await database.list({ afterUuid: "", limit: 1_000 })).map(({ uuid }) => uuid),
    outstandingThere: await outstandingThere(new HttpLeases(connection, id)),
  };
}

async function outstandingThere(leases: HttpLeases): Promise<string[]> {
  const uuids: string[] = [];
  for (let pageToken = ""; ;) {
    const page = await leases.list({ pageToken, pageSize: 100 });
    uuids.push(...page.leases.map(({ uuid }) => uuid));
    if (page.nextPageToken === "") return uuids;
    pageToken = page.nextPageToken;
  }
}

import type { Bucket, Client } from "../src/users/client/index.ts";
import type { CellFacts, Facts } from "./differences.ts";
import { claimsOf } from "./entry.ts";
import type { Progress } from "./progress.ts";
import { listRecords, lookUpAll } from "./records.ts";
import type { ScenarioResult } from "./scenario.ts";
import { thousands } from "./table.ts";
import { cellIds, type CellId, type Environment } from "./environment.ts";

/**
 * Reads everything that the check compares: the router's answer for every name, the listing of every record,
 * and both cells' own databases.
 */
export async function gatherFacts(
  environment: Environment,
  result: ScenarioResult,
  progress: Progress,
): Promise<Facts> {
  // A rename may have given a group a name that was meant for a person. So a name without a slash is looked
  // up both as a route and as a username.
  const asked = environment.workload.names.flatMap(({ name }): Bucket[] => [
    { type: "ROUTES", value: name },
    ...(name.includes("/") ? [] : [{ type: "USERNAMES" as const, value: name }]),
  ]);
  let done = 0;
  progress.set(() => `checking: ${thousands(done)} of ${thousands(asked.length)} names looked up`);
  const found = await lookUpAll(environment.connect("router"), asked, (count) => (done = count));
  progress.set(() => "checking: listing the records of both cells");
  const cells: CellFacts[] = [];
  for (const id of cellIds) cells.push(await cellFacts(environment, result, id));
  const problems = [
    ...environment.problems,
    ...environment.witness.violations,
    ...cellIds.flatMap((id) => environment.counts[id].problems),
  ];
  return { asked, found, cells, problems };
}

async function cellFacts(environment: Environment, result: ScenarioResult, id: CellId): Promise<CellFacts> {
  const client = environment.connect(id);
  const { database } = result.cells[id];
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

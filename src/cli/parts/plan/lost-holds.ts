import type { Bucket, Cell, Client, Lease } from "../../../client/index.ts";
import { untilAnswered } from "../../backup/until-answered.ts";
import type { Io } from "../../framework/io.ts";
import type { Names } from "./names.ts";
import type { PlanLine } from "./plan-file.ts";

const PAGE_SIZE = 1_000;

/**
 * The names of open leases whose holds the shard has lost. The ledger has granted the lease, and a commit of
 * it changes nothing on the shard. Only the cell knows whether it has saved the rows, so the plan leaves
 * them.
 *
 * @param held - `leaseKey` of each name that a lease of the shard holds
 */
export async function lostHolds(
  io: Io,
  client: Client,
  cells: readonly Cell[],
  names: Names,
  shard: number,
  held: ReadonlySet<string>,
): Promise<PlanLine[]> {
  const lines: PlanLine[] = [];
  for (const { cell_id: cell, removed_at: removedAt } of cells) {
    if (removedAt !== null) continue;
    const { leases } = client.forCell(cell);
    const listed = await untilAnswered(io, () => leases.list({ pageSize: PAGE_SIZE }).all());
    for (const { uuid } of listed) {
      // A list has counts instead of names.
      const lease = await untilAnswered(io, () => leases.get(uuid));
      for (const { bucket, verb } of opsOf(lease))
        if (names.shardOf(bucket) === shard && !held.has(leaseKey(uuid, names.keyOf(bucket))))
          lines.push(lineOf(cell, uuid, bucket, verb));
    }
  }
  return lines;
}

export const leaseKey = (uuid: string, name: string): string => `${uuid} ${name}`;

/** Destroys that found nothing hold nothing, and nobody can tell them from others. */
function opsOf({ state, counts, creates = [], destroys = [], replaces = [] }: Lease): {
  bucket: Bucket;
  verb: string;
}[] {
  if (state !== "GRANTED") return [];
  return [
    ...creates.map(({ bucket }) => ({ bucket, verb: "creates" })),
    ...replaces.map(({ bucket }) => ({ bucket, verb: "replaces" })),
    ...(counts.missing > 0 ? [] : destroys.map(({ bucket }) => ({ bucket, verb: "destroys" }))),
  ];
}

const lineOf = (cell: string, uuid: string, name: Bucket, verb: string): PlanLine => ({
  name,
  do: "leave",
  proposal: "leave",
  certain: true,
  because:
    `the open lease ${uuid} of cell ${cell} ${verb} it, and the shard has lost its hold: a commit changes ` +
    "nothing here, and the verification of the cell takes or releases the name",
  now: null,
  known: null,
});

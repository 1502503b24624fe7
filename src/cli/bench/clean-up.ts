import { isLeaseholdError, type Client, type Source } from "../../users/client/index.ts";
import { take } from "../output/result.ts";
import { prefixOf, type BenchTypes } from "./bench-run.ts";

export interface CleanedUp {
  destroyed: number;
  rolled_back: number;
}

/** Names in one lease, fewer than any deployment allows by default. */
const AT_ONCE = 100;

/**
 * Gives up all names of a run. It needs no memory of the run, so it also works after a kill: the source ids
 * of a run follow each other, and a name that a lease still holds tells the lease.
 *
 * @param open - leases of the run whose outcome is not known
 */
export async function cleanUp(
  client: Client,
  run: string,
  { source }: Pick<BenchTypes, "source">,
  open: readonly string[] = [],
): Promise<CleanedUp> {
  const done: CleanedUp = { destroyed: 0, rolled_back: 0 };
  for (const uuid of open) if (await rollBack(client, uuid)) done.rolled_back += 1;
  const prefix = prefixOf(run);
  for (;;) {
    const listing = client.records.list({
      sourceType: source as Source["type"],
      // The prefix without its last character comes before all of the run.
      sourceIdGt: prefix.slice(0, -1),
      pageSize: AT_ONCE,
    });
    const { items } = await take(listing, AT_ONCE);
    const own = items.filter(({ source: row }) => row.id.startsWith(prefix));
    if (own.length === 0) return done;
    const held = new Set(own.flatMap(({ lease_uuid: lease }) => lease ?? []));
    for (const uuid of held) if (await rollBack(client, uuid)) done.rolled_back += 1;
    const free = own.filter(({ lease_uuid: lease }) => lease === null);
    if (free.length === 0) continue;
    const destroys = free.map(({ bucket }) => ({ bucket }));
    const { uuid } = await client.leases.begin({ destroys, allow_missing: true });
    await client.leases.commit(uuid);
    done.destroyed += free.length;
  }
}

/** False: the lease was decided before. */
async function rollBack(client: Client, uuid: string): Promise<boolean> {
  try {
    await client.leases.rollback(uuid);
    return true;
  } catch (error) {
    if (isLeaseholdError(error) && error.code === "FAILED_PRECONDITION") return false;
    throw error;
  }
}

import { isLeaseholdError, type Client, type Lease } from "../../users/client/index.ts";
import { adviceOn } from "../../common/status/lease-advice.ts";

/**
 * Says what the cell reported last, because a cell that is alive decides its leases itself, and how to
 * decide. Nothing depends on the report, so one that cannot be read is no failure.
 */
export async function readAdvice(client: Client, lease: Lease): Promise<string[]> {
  try {
    return adviceOn(lease, await client.cells.status());
  } catch (error) {
    if (!isLeaseholdError(error)) throw error;
    const unread = `The last report of cell ${lease.cell_id} cannot be read: ${error.message}`;
    return [unread, ...adviceOn(lease, null).slice(1)];
  }
}

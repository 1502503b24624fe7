import { isLeaseholdError, type Client } from "../../client/index.ts";
import { lineOfStatus } from "../../status/line-of-status.ts";

/**
 * Says what the cell reported last, because a cell that is alive decides its leases itself. Nothing depends
 * on it, so a status that cannot be read is no failure.
 */
export async function reportedLine(client: Client): Promise<string> {
  try {
    return lineOfStatus(await client.cells.status());
  } catch (error) {
    if (!isLeaseholdError(error)) throw error;
    return `The last report of cell ${client.cell} cannot be read: ${error.message}`;
  }
}

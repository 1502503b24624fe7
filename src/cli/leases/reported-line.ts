import { isLeaseholdError, type CellStatus, type Client } from "../../client/index.ts";
import { durationText } from "../../text/duration.ts";

/**
 * Says what the cell reported last, because a cell that is alive decides its leases itself. Nothing depends
 * on it, so a status that cannot be read is no failure.
 */
export async function reportedLine(client: Client): Promise<string> {
  try {
    return lineOf(await client.cells.status());
  } catch (error) {
    if (!isLeaseholdError(error)) throw error;
    return `The last report of cell ${client.cell} cannot be read: ${error.message}`;
  }
}

function lineOf(status: CellStatus | null): string {
  if (status === null) return "The cell has never reported its status, so it may or may not be alive.";
  const { age_ms: ageMs, sdk, reconciliation } = status;
  const run =
    reconciliation === undefined
      ? "no reconciliation"
      : `a reconciliation: ${reconciliation.outcome} ${durationText(reconciliation.ended_ago_ms)} ago`;
  return `The cell reported ${durationText(ageMs)} ago (${sdk.name} ${sdk.version}), with ${run}.`;
}

import { isLeaseholdError, type Cell, type Client } from "../../users/client/index.ts";
import type { Context } from "../framework/context.ts";
import { untilAnswered } from "./until-answered.ts";

/** The client never repeats this call by itself, so look before each attempt. */
export async function addCell(
  { io }: Context,
  client: Client,
  { cell_id: id, name, address, location_hint: hint }: Cell,
  reason: string,
): Promise<void> {
  await untilAnswered(io, async () => {
    try {
      const location = hint === null ? {} : { location_hint: hint as never };
      await client.cells.add({ cell_id: id, name, address, ...location, reason });
    } catch (error) {
      // The answer to an earlier attempt was lost. The cell is as this one: the others were refused.
      if (!(isLeaseholdError(error) && error.code === "ALREADY_EXISTS")) throw error;
    }
  });
}

import type { MessageInitShape } from "@bufbuild/protobuf";
import type { CellInfoSchema, CellService, GetCellsResponseSchema } from "./protobuf.ts";
import { callOf, type WireContext, type WireService } from "./wire-call.ts";

interface ApiCell {
  id: string;
  address: string;
}

/** What `SESSION_PREFIX` finds the cell by. */
export const infoOf = ({ id, address }: ApiCell): MessageInitShape<typeof CellInfoSchema> => ({
  id: BigInt(id),
  address,
  sessionPrefix: `cell-${id}`,
});

export async function getCells(
  _: unknown,
  context: WireContext,
): Promise<MessageInitShape<typeof GetCellsResponseSchema>> {
  const call = await callOf(context, "listCellAddresses");
  const { cells } = await call.send("listCellAddresses", {});
  return { cells: cells.map(infoOf) };
}

export const cellService: WireService<typeof CellService> = {
  async getCell({ cellId }, context) {
    const call = await callOf(context, "listCellAddresses");
    const { cells } = await call.send("listCellAddresses", {});
    const cell = cells.find(({ id }) => id === String(cellId));
    return { cellInfo: infoOf(cell ?? call.fail("NOT_FOUND", `there is no cell ${cellId}`)) };
  },
};

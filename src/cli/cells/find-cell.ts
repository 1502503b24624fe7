import type { Cell, Client } from "../../users/client/index.ts";
import { CommandError } from "../framework/command-error.ts";
import { exitCodes } from "../framework/exit-codes.ts";

/**
 * Finds a cell, also a removed one.
 *
 * @throws an error with the exit code 4 if there is no such cell
 */
export async function findCell(client: Client, id: string): Promise<Cell> {
  for await (const cell of client.cells.list({ includeRemoved: true })) if (cell.cell_id === id) return cell;
  throw new CommandError(`there is no cell ${id}`, exitCodes.notFound, ["leasehold cells ls"]);
}

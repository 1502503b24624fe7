import type { TypesDocument } from "leasehold/cell";
import type { Timing } from "../launcher/timing.ts";

/**
 * The configuration of a cell's process. It is sent as a message, because other users could read the key on
 * the command line or in the environment.
 */
export interface CellConfig {
  /** The cell's id, such as "1". */
  cell: string;
  /** The ids of all cells, for the links between their pages. */
  cells: readonly string[];
  port: number;
  /** The router's port, because browsers send its origin. */
  routerPort: number;
  coordinator: string;
  key: string;
  /** The types that are declared at the coordinator. */
  types: TypesDocument;
  /** A folder for this cell only. */
  folder: string;
  /** If undefined, the cell uses PGlite in its folder. */
  databaseUrl: string | undefined;
  timing: Timing;
}

/** The message that the process sends when it accepts requests. */
export const READY = "ready";

import type { Timing } from "../launcher/timing.ts";

/**
 * What a cell's process is told. Not on its command line and not in its environment, where others could read
 * the key.
 */
export interface CellConfig {
  /** Its id, such as "1". */
  cell: string;
  /** All of them, for the links between them. */
  cells: readonly string[];
  port: number;
  /** What the browser calls the router. */
  routerPort: number;
  coordinator: string;
  key: string;
  /** Of this cell alone. */
  folder: string;
  /** Undefined: PGlite, in the folder. */
  databaseUrl: string | undefined;
  timing: Timing;
}

/** What it says once it can be asked. */
export const READY = "ready";

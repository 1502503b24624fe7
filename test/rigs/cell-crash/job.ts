import type { FlowName, Names } from "./flows.ts";
import type { CellConfig } from "./open-cell.ts";
import type { Point } from "./points.ts";

/** What a process must do, and the point where it dies. */
export interface Job {
  config: CellConfig;
  flow: FlowName;
  names: Names;
  point: Point;
  /** Which hit of the point counts, from 1. */
  hit: number;
}

/** The name of the killed process's connections in `pg_stat_activity`. */
export const KILLED_PROCESS = "killed process";

/** Printed when the process has reached its point. */
export const REACHED = "reached ";

import type { FlowName, Names } from "./flows.ts";
import type { CellConfig } from "./open-cell.ts";
import type { Point } from "./points.ts";

/** What a process is to do, and where it is to die. */
export interface Job {
  config: CellConfig;
  flow: FlowName;
  names: Names;
  point: Point;
  /** Which time it is come to, from 1. */
  hit: number;
}

/** As `pg_stat_activity` shows it. */
export const KILLED_PROCESS = "killed process";

/** What it says when it is there. */
export const REACHED = "reached ";

import { tableOf } from "../../support/holds.ts";
import type { Op } from "../../../src/coordinator/kernel/messages.ts";
import type { Cell } from "./cell.ts";
import type { LocalRow, Name } from "./local.ts";
import type { Part } from "./part.ts";

/** A lease that the last phase made. */
export interface Made {
  cell: Cell;
  name: Name;
  shard: number;
  lease: string;
  isCommitted: boolean;
  /** The epoch of its execution. */
  epoch: number;
  /** The incarnation of the ledger's instance that made it. */
  incarnation: number;
  /** Whether its shard has stored a point of the ledger that includes the lease's grant. */
  isGrantTold: boolean;
}

export const opsOf = (cell: Cell, row: LocalRow): Op[] =>
  cell.opsOf({ creates: [row], destroys: [], replaces: [] });

/** Reads durable rows. A part that went back to before its first use has no tables. */
export function read<Row>(
  { disk }: Part<object>,
  table: string,
  where: string,
  ...bindings: string[]
): Row[] {
  const stored = table === "hold" ? "log" : table;
  const isThere = disk.readDurable("SELECT 1 FROM sqlite_master WHERE name = ?", stored).length > 0;
  return isThere ? disk.readDurable<Row>(`SELECT * FROM ${tableOf(table)} WHERE ${where}`, ...bindings) : [];
}

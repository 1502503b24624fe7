import { commandLine } from "../../common/text/shell-word.ts";

/** The command that shows what holds a name: a transfer, or a lease of its cell. */
export function showHolder({
  cell,
  lease,
  transfer,
}: Pick<FoundName, "cell" | "lease" | "transfer">): string[] {
  if (transfer !== null) return [commandLine("transfers", "show", transfer)];
  return lease === null || cell === null ? [] : [commandLine("leases", "show", lease, "--cell", cell)];
}

/** One row of a lookup. */
export interface FoundName {
  name: string;
  type: string | null;
  found: boolean;
  cell: string | null;
  address: string | null;
  epoch: number | null;
  status: string | null;
  lease: string | null;
  /** The id of the transfer that holds the name. `lease` is then its UUID. */
  transfer: string | null;
}

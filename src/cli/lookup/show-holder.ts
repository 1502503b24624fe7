import { commandLine } from "../../common/text/shell-word.ts";
import type { FoundName } from "./found-name.ts";

/** The command that shows what holds a name: a transfer, or a lease of its cell. */
export function showHolder({
  cell,
  lease,
  transfer,
}: Pick<FoundName, "cell" | "lease" | "transfer">): string[] {
  if (transfer !== null) return [commandLine("transfers", "show", transfer)];
  return lease === null || cell === null ? [] : [commandLine("leases", "show", lease, "--cell", cell)];
}

import { mayBeCut, type RangeHolds } from "../../capabilities/transfer/range-holds.ts";
import type { Envelope } from "../messages.ts";
import { refused, type Result } from "../refusal.ts";
import type { Inquirer } from "./inquirer.ts";

interface Needs {
  readonly ranges: Pick<RangeHolds, "involving">;
  readonly inquirer: Pick<Inquirer, "inquire">;
}

/**
 * Carries out a read of a cell's claims. It first asks about the transfers from and to the cell that may have
 * been cut, so that an answer shows what an acknowledged cut has moved (Y4).
 */
export async function readClaims<T>(
  { ranges, inquirer }: Needs,
  cell: string,
  { traces }: Envelope,
  read: () => Promise<Result<T>>,
): Promise<Result<T>> {
  const open = ranges.involving(cell).filter(mayBeCut);
  if (open.length > 0) {
    const verdicts = await inquirer.inquire(open, traces);
    if ([...verdicts.values()].includes("unknown")) return unknownTransfer;
  }
  return read();
}

const unknownTransfer: Result<never> = refused(
  "UNAVAILABLE",
  "the ledger that knows whether a transfer of the cell's claims was cut cannot be reached; retry the call",
  { retryAfterMs: 1_000 },
);

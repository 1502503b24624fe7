import type { Client } from "../../client/index.ts";
import { createClient } from "../../client/index.ts";
import { keyFactsOf } from "../connection/key-facts.ts";
import { CommandError, usageError } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import { exitCodes } from "../framework/exit-codes.ts";

export interface BenchCell {
  id: string;
  /** Calls of the load. Ctrl-C ends them. */
  loading: Client;
  /** Calls of the clean-up, which Ctrl-C does not end. */
  cleaning: Client;
  /** Makes the key invalid that was made for the run. */
  revokeKey: () => Promise<void>;
}

/** The cell that an operator's run uses by default. It is registered once, because cells stay. */
const NAME = "leasehold-bench";
const ID = "9000000000000000001";
/** Nothing answers there. */
const ADDRESS = "https://leasehold-bench.invalid";

/** The key ends by itself, if it can't be revoked. */
const KEY_LIFETIME_S = 3_600;

const LOAD_DEADLINE_MS = 10_000;
const CLEANING_DEADLINE_MS = 30_000;

/** With an operator key, the run gets a key for an hour: of `--cell`, or of a cell for benches. */
export async function openCell(context: Context, given: string | undefined, run: string): Promise<BenchCell> {
  const { url, key } = await context.target();
  const facts = keyFactsOf(key);
  if (facts?.role === "cell" && facts.cell !== null) {
    if (given !== undefined && given !== facts.cell)
      throw usageError(`this is a key of cell ${facts.cell}, so leave out --cell`);
    return { ...clientsOf(context, url, key, facts.cell), id: facts.cell, revokeKey: async () => undefined };
  }
  if (facts?.role !== "operator")
    throw new CommandError("a bench needs a key of a cell, or an operator key", exitCodes.notAllowed, [
      "leasehold keys mint --role cell --cell ID",
    ]);
  const operator = operatorOf(context, url, key);
  const reason = `leasehold bench, run ${run}`;
  const cell = given ?? (await ownCell(operator, reason));
  const minted = await operator.keys.mint({
    role: "cell",
    cell_id: cell,
    expires_in_s: KEY_LIFETIME_S,
    note: reason,
    reason,
  });
  return {
    ...clientsOf(context, url, minted.key, cell),
    id: cell,
    revokeKey: async () => void (await operator.keys.revoke(minted.id, { cell_id: cell, reason })),
  };
}

/** Its calls must not end with Ctrl-C, because a key whose answer is lost could not be revoked. */
const operatorOf = ({ io }: Context, url: string, key: string): Client =>
  createClient({ url, key, fetch: io.fetch, deadlineMs: CLEANING_DEADLINE_MS });

async function ownCell(operator: Client, reason: string): Promise<string> {
  for await (const { name, cell_id: id } of operator.cells.list()) if (name === NAME) return id;
  await operator.cells.add({ cell_id: ID, name: NAME, address: ADDRESS, reason });
  return ID;
}

function clientsOf(
  { io: { fetch, signal } }: Context,
  url: string,
  key: string,
  cell: string,
): Pick<BenchCell, "loading" | "cleaning"> {
  const all = { url, key, cell, fetch, breaker: false } as const;
  return {
    loading: createClient({ ...all, signal, deadlineMs: LOAD_DEADLINE_MS }),
    cleaning: createClient({ ...all, deadlineMs: CLEANING_DEADLINE_MS }),
  };
}

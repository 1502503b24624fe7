import { randomInt } from "node:crypto";
import type { Client } from "../../users/client/index.ts";
import { createClient } from "../../users/client/index.ts";
import { removeEmptyCell } from "../cells/remove-cell.ts";
import { keyFactsOf } from "../connection/key-facts.ts";
import { CommandError, usageError, exitCodes } from "../framework/command-error.ts";
import { Context } from "../framework/context.ts";
import { commandLine } from "../../common/text/shell-word.ts";

export interface BenchCell {
  id: string;
  /** Calls of the load. Ctrl-C ends them. */
  loading: Client;
  /** Calls of the clean-up, which Ctrl-C does not end. */
  cleaning: Client;
  /**
   * Makes the key invalid that was made for the run. If the run has no names any more, it also removes the
   * cell that was registered for it.
   */
  close: (isClean: boolean) => Promise<void>;
}

/** Nothing answers there. */
const ADDRESS = "https://leasehold-bench.invalid";

/** The name of the cell that an operator's run registers, unless `--cell` names one. */
const nameOf = (run: string): string => `leasehold-bench-${run}`;

/** Ids are never used again, so each run takes a new one, far from those that people give. */
const newCellId = (): string => `8${[0, 1].map(() => String(randomInt(1e9)).padStart(9, "0")).join("")}`;

/** The key ends by itself, if it can't be revoked. */
const KEY_LIFETIME_S = 3_600;

const LOAD_DEADLINE_MS = 10_000;
const CLEANING_DEADLINE_MS = 30_000;

/**
 * With an operator key, the run gets a key for an hour: of `--cell`, or of a cell that it registers and
 * removes again. An earlier run has registered its cell already.
 */
export async function openCell(
  context: Context,
  given: string | undefined,
  run: string,
  isEarlier: boolean,
): Promise<BenchCell> {
  const { url, key } = await context.target();
  const facts = keyFactsOf(key);
  if (facts?.role === "cell" && facts.cell !== null) {
    if (given !== undefined && given !== facts.cell)
      throw usageError(`this is a key of cell ${facts.cell}, so leave out --cell`);
    return { ...clientsOf(context, url, key, facts.cell), id: facts.cell, close: async () => undefined };
  }
  if (facts?.role !== "operator")
    throw new CommandError("a bench needs a key of a cell, or an operator key", exitCodes.notAllowed, [
      "leasehold keys mint --role cell --cell ID",
    ]);
  const operator = operatorOf(context, url, key);
  const reason = `leasehold bench, run ${run}`;
  const id = given ?? (isEarlier ? await findOwnCell(operator, run) : newCellId());
  const cleanUpLine = (source: string): string => commandLine("bench", "--clean-up", run, "--source", source);
  const remove = (own: string): Promise<void> =>
    removeEmptyCell(withoutInterrupt(context), operator, own, reason, cleanUpLine);
  const isNew = given === undefined && !isEarlier;
  try {
    if (isNew) await operator.cells.add({ cell_id: id, name: nameOf(run), address: ADDRESS, reason });
    const minted = await operator.keys.mint({
      role: "cell",
      cell_id: id,
      expires_in_s: KEY_LIFETIME_S,
      note: reason,
      reason,
    });
    return {
      ...clientsOf(context, url, minted.key, id),
      id,
      close: async (isClean) => {
        await operator.keys.revoke(minted.id, { cell_id: id, reason });
        if (given === undefined && isClean) await remove(id);
      },
    };
  } catch (error) {
    // The add may have failed because another cell has the id, so only the name tells whose cell it is.
    const removeOwn = async (): Promise<void> => remove(await findOwnCell(operator, run));
    if (isNew) await removeOwn().catch(() => undefined);
    throw error;
  }
}

async function findOwnCell(operator: Client, run: string): Promise<string> {
  for await (const { name, cell_id: id } of operator.cells.list()) if (name === nameOf(run)) return id;
  throw usageError(`run ${run} has left no cell of its own: give --cell`);
}

/** Ctrl-C must not end the removal, because a cell that stays would have to be removed by hand. */
const withoutInterrupt = ({ io, options }: Context): Context =>
  new Context({ ...io, signal: new AbortController().signal }, options);

/** Its calls must not end with Ctrl-C, because a key whose answer is lost could not be revoked. */
const operatorOf = ({ io }: Context, url: string, key: string): Client =>
  createClient({ url, key, fetch: io.fetch, deadlineMs: CLEANING_DEADLINE_MS });

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

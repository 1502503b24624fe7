/** Moves organizations back and forth between two cells at work, whatever happens to the coordinator. */
import { eq } from "drizzle-orm";
import { setTimeout as pause } from "node:timers/promises";
import type { Random } from "../../../demo/random.ts";
import { isLeaseholdError, type Transfer } from "../../../src/users/client/index.ts";
import { users, type MovingCell } from "./moving-cell.ts";

/** How a move ends. */
const ends = ["cut", "abort", "switch-back"] as const;
export type End = (typeof ends)[number];

const PAUSE_MS = 50;

/** Which cell has an organization. */
export type Homes = Map<string, MovingCell>;

export class Moves {
  readonly counts: Record<End, number> = { cut: 0, abort: 0, "switch-back": 0 };
  readonly #cells: readonly [MovingCell, MovingCell];
  readonly #homes: Homes;
  readonly #random: Random;

  constructor(cells: readonly [MovingCell, MovingCell], homes: Homes, random: Random) {
    this.#cells = cells;
    this.#homes = homes;
    this.#random = random;
  }

  /** Makes one move, with each end in turn. Returns false if the organization had no names to move. */
  async move(turn: number): Promise<boolean> {
    const [organization = ""] = this.#random.shuffled([...this.#homes.keys()]);
    const from = this.#homes.get(organization) ?? this.#cells[0];
    const to = this.#cells.find((cell) => cell !== from) ?? from;
    const end = ends[turn % ends.length] ?? "cut";
    const transfer = await prepared(from, to, organization).catch((error: unknown) => {
      if (isLeaseholdError(error) && error.reason === "SCOPE_EMPTY") return undefined;
      throw error;
    });
    if (transfer === undefined) {
      await from.setState(organization, "active");
      return false;
    }
    const { id } = transfer;
    await to.copy(organization, await from.rowsOf(organization));
    await persist(() => to.client.transfers.accept(id));
    if (end === "abort") {
      const [aborting = from] = this.#random.shuffled([from, to]);
      await persist(() => aborting.client.transfers.abort(id));
      await to.copy(organization, []);
      await from.setState(organization, "active");
    } else {
      await cut(from, to, id);
      if (end === "switch-back") await this.#switchBack(from, to, organization, id);
      else {
        await from.copy(organization, []);
        await from.setState(organization, "moved");
        await to.setState(organization, "active");
        this.#homes.set(organization, to);
      }
    }
    this.counts[end] += 1;
    return true;
  }

  async #switchBack(from: MovingCell, to: MovingCell, organization: string, id: string): Promise<void> {
    await persist(async () => {
      const { state } = await to.client.transfers.get(id);
      return state === "FINISHED" ? state : undefined;
    });
    const back = await prepared(to, from, organization, id);
    await persist(() => from.client.transfers.accept(back.id));
    await cut(to, from, back.id);
    await to.copy(organization, []);
    await from.setState(organization, "active");
  }
}

/** The rows of the organization can't change from here on. */
async function prepared(
  from: MovingCell,
  to: MovingCell,
  scope: string,
  switchBackOf?: string,
): Promise<Transfer> {
  await from.setState(scope, "read_only");
  return persist(() => from.client.transfers.prepare({ to: to.id, scope }, { switchBackOf }));
}

async function cut(from: MovingCell, to: MovingCell, id: string): Promise<void> {
  for (const { cell } of [from, to]) await persist(() => cell.reportTransfer(id));
  await persist(() => from.client.transfers.cut(id));
}

/** Repeats a step until it has succeeded. A refusal that no repetition can change is thrown. */
async function persist<T>(step: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const done = await step().catch((error: unknown) => {
      if (!isLeaseholdError(error) || !error.retryable) throw error;
      return undefined;
    });
    if (done !== undefined) return done;
    await pause(PAUSE_MS);
  }
}

/** Creates, renames and deletes users of a cell until it is told to stop. Most names are wanted by both. */
export async function work(
  cell: MovingCell,
  organizations: readonly string[],
  names: number,
  random: Random,
  isOver: () => boolean,
  onSaved: () => void,
): Promise<void> {
  while (!isOver()) {
    const [organization = ""] = random.shuffled(organizations);
    const path = `name-${random.between(1, names)}`;
    const rows = await cell.rowsOf(organization);
    const [row] = random.shuffled(rows);
    const isNew = row === undefined || random.chance(rows.length > names / 8 ? 0.2 : 0.6);
    const change = (): Promise<unknown> =>
      cell.write(organization, async (tx) => {
        if (isNew) await tx.insert(users, { id: random.uuid(), path, organization });
        else if (random.chance(0.6)) await tx.update(users, eq(users.id, row.id), { path });
        else await tx.delete(users, eq(users.id, row.id));
      });
    // Names are taken, the organization is being moved, or the coordinator is away.
    const isSaved = await change().then(
      () => true,
      () => false,
    );
    if (isSaved) onSaved();
    else await pause(PAUSE_MS);
  }
}

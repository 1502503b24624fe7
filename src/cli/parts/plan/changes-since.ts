import { isLeaseholdError, type Client } from "../../../client/index.ts";
import type { Change } from "../../../client/api-types.ts";
import { formatPositions, parsePositions, type Positions } from "../../../router/positions.ts";
import { untilAnswered } from "../../backup/until-answered.ts";
import { CommandError } from "../../framework/command-error.ts";
import { exitCodes } from "../../framework/exit-codes.ts";
import type { Io } from "../../framework/io.ts";
import type { Names } from "./names.ts";

const PAGE_SIZE = 1_000;
const PAUSE_MS = 1_000;
/** The number of times that a shard may be unavailable before the command gives up. */
const MAX_PAUSES = 300;

/** Returns the newest position of each shard. */
export async function newestPositions(io: Io, client: Client): Promise<Positions> {
  const { checkpoint } = await untilAnswered(io, () => client.changes.page({ pageSize: 1 }));
  return parsePositions(checkpoint) ?? new Map();
}

/** Reads what has changed on one shard since a position, again and again. */
export class ChangesSince {
  readonly #io: Io;
  readonly #client: Client;
  readonly #names: Names;
  readonly #shard: number;
  /** Everything up to it was read. */
  position: number;
  /** The newest change of each name, by its key. */
  readonly byName = new Map<string, Change>();
  /** The claims that have changed. Those of an erased name have nothing else (K5). */
  readonly uuids = new Set<string>();
  #checkpoint: string | undefined;

  constructor(io: Io, client: Client, names: Names, shard: number, position: number) {
    this.#io = io;
    this.#client = client;
    this.#names = names;
    this.#shard = shard;
    this.position = position;
  }

  /** Reads until nothing is left. Returns false if the shard's log no longer has all changes. */
  async update(): Promise<boolean> {
    this.#checkpoint ??= await this.#start();
    try {
      for (let pauses = 0; pauses <= MAX_PAUSES;) {
        const page = await untilAnswered(this.#io, () =>
          this.#client.changes.page({ after: this.#checkpoint, pageSize: PAGE_SIZE }),
        );
        for (const change of page.changes) if (change.shard === this.#shard) this.#note(change);
        this.#checkpoint = page.checkpoint;
        this.position = parsePositions(page.checkpoint)?.get(this.#shard) ?? this.position;
        const isRead = !page.unavailable.includes(this.#shard);
        if (isRead && !page.hasMore) return true;
        if (isRead) continue;
        pauses += 1;
        await this.#io.wait(PAUSE_MS);
      }
    } catch (error) {
      if (isLeaseholdError(error) && error.reason === "CHANGES_PRUNED") return false;
      throw error;
    }
    throw new CommandError(`the changes of shard-${this.#shard} cannot be read`, exitCodes.unavailable);
  }

  /** The newest positions of the other shards, whose changes are not wanted. */
  async #start(): Promise<string> {
    const positions = await newestPositions(this.#io, this.#client);
    return formatPositions(new Map(positions).set(this.#shard, this.position));
  }

  #note(change: Change): void {
    const { claim } = change;
    if (claim === undefined) return;
    this.uuids.add(claim.uuid);
    if (claim.bucket !== undefined) this.byName.set(this.#names.keyOf(claim.bucket), change);
  }
}

import { isLeaseholdError, type Part, type Reconciliation } from "../../users/client/index.ts";
import { parsePositions } from "../../users/router/positions.ts";
import { CommandError, exitCodes } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import { callPart } from "../parts/parts.ts";
import { untilAnswered } from "./deployment-cells.ts";

/**
 * How far the epochs of restored claims begin above the newest position of the backup: more than a shard
 * assigns in hours. What was claimed after the backup had epochs above it too.
 */
const MARGIN = 500_000;
/** Each accepted loss raises the position of a shard by a million (H6). */
const MAX_LOSSES = 5_000;
const SHARDS_AT_ONCE = 4;

const readPart = async (context: Context, id: string): Promise<Part> =>
  (await untilAnswered(context.io, () => callPart<{ part: Part }>(context, "GET", id))).part;

/** All shards, also those that are lost, which tell no changes. */
export async function readShards(context: Context): Promise<Part[]> {
  const shards: Part[] = [];
  for (;;) {
    const part = await readPart(context, `shard-${shards.length}`).catch(undefinedIfUnknown);
    if (part === undefined) return shards;
    shards.push(part);
  }
}

function undefinedIfUnknown(error: unknown): undefined {
  if (!(isLeaseholdError(error) && error.code === "NOT_FOUND")) throw error;
}

/** The smallest position from which restored claims may get their epochs. */
export function leastPositionOf(checkpoint: string): number {
  const positions = parsePositions(checkpoint);
  if (positions === undefined)
    throw new CommandError("the checkpoint of the backup cannot be read", exitCodes.failed);
  return Math.max(0, ...positions.values()) + MARGIN;
}

/**
 * Makes every shard refuse all begins except those of a verification (H6): declares it lost, and accepts the
 * loss. Repeats this until its position is high enough, so that every later epoch of a name is larger than
 * before the loss (E1). A run that repeats another one declares nothing that is done.
 */
export async function protectShards(context: Context, leastPosition: number, reason: string): Promise<void> {
  const shards = (await readShards(context)).map(({ id }) => id);
  for (let at = 0; at < shards.length; at += SHARDS_AT_ONCE)
    await Promise.all(
      shards
        .slice(at, at + SHARDS_AT_ONCE)
        .map((shard) => protectShard(context, shard, leastPosition, reason)),
    );
}

async function protectShard(
  context: Context,
  shard: string,
  leastPosition: number,
  reason: string,
): Promise<void> {
  for (let losses = 0; losses < MAX_LOSSES; losses += 1) {
    const { state, point } = await readPart(context, shard);
    if (state === "reconciling" && (point?.position ?? 0) >= leastPosition) return;
    // Whatever became of a call that failed, the next turn reads the state first.
    await untilAnswered(context.io, async () => {
      const { state: now } = await readPart(context, shard);
      const declared = now === "lost" ? {} : { declare_lost: true };
      await callPart<Reconciliation>(context, "POST", shard, "/reconcile", {
        dry_run: false,
        ...declared,
        reason,
      });
    });
  }
  throw new CommandError(
    `${shard} does not reach position ${leastPosition}, so its epochs would be lower than in the backup; ` +
      "give --lower-epochs if nothing has stored epochs. The same command goes on",
    exitCodes.failed,
  );
}

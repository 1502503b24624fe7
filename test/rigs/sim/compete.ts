import { bucketType } from "../../support/types.ts";
import type { Cell } from "./cell.ts";
import { drawRow } from "./draw-rows.ts";
import type { Name } from "./local.ts";
import type { Random } from "./random.ts";
import type { Simulation } from "./simulation.ts";

/** Names without rows, which the cells take only for some time. Two to seven shards share them. */
const NAMES: readonly Name[] = ["queue-0", "queue-3", "queue-4"].map((canonical) => ({
  type: bucketType("ROUTES"),
  canonical,
}));

/** With the deadline of a begin, the longest wait is shorter than the timeout of a call. */
const MOST_WAIT_MS = 8_000;

/**
 * Takes names for which the other cells wait too, and gives them up again (B11). Some begins don't wait, and
 * some callers give up before they have an answer.
 */
export async function compete(
  { judge }: Simulation,
  cell: Cell,
  random: Random,
  queueMs: number,
): Promise<void> {
  const { api, caller } = cell;
  const creates = random.some(NAMES, random.pick([1, 1, 2])).map((name) => drawRow(name, cell, random));
  const lease = random.uuid();
  const waitMs = Math.ceil(Math.min(MOST_WAIT_MS, random.exponential(queueMs)));
  const batch = {
    lease,
    ops: cell.opsOf({ creates, destroys: [], replaces: [] }),
    allowMissing: false,
    ...(random.chance(0.8) ? { waitMs } : {}),
  };
  const heldMs = random.exponential(random.pick([20, 300, 1_000]));
  const begun = api.begin(cell.id, caller, batch);
  if (random.chance(0.85)) {
    const answer = await begun;
    if (answer.kind === "refused") return judge.see(`competed: ${answer.refusal.code}`);
    judge.see(`competed: ${answer.kind}`);
  }
  await api.sleep(heldMs);
  await api.decide(cell.id, caller, lease, "ROLLED_BACK");
}

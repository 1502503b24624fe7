import { ask } from "../../../kernel/ask.ts";
import type { ShardSighting } from "../messages.ts";
import { fanOut } from "../../../kernel/fan-out.ts";
import { readSeen } from "../../../d1/directory-copies.ts";
import { askAgain, type GrowthDriver } from "./growth-driver.ts";

/** What the ledgers have seen of the shards. */
export interface Sightings {
  byShard: ReadonlyMap<number, readonly ShardSighting[]>;
  /** Whether every ledger has said what it has seen. */
  areComplete: boolean;
}

/** How long one ledger has for its answer. */
const LEDGER_MS = 5_000;

const NONE: Sightings = { byShard: new Map(), areComplete: false };

/**
 * Asks the ledgers of all cells, up to a moment, what they have seen of the shards, so that a shard that went
 * back can notice it (H2). The ledgers of removed cells are not asked: no cell has a name through them.
 */
export async function readSightings(driver: GrowthDriver, untilMs: number): Promise<Sightings> {
  const { clock, limits, objects } = driver;
  const cells = await readCells(driver);
  if (cells === undefined) return NONE;
  const answers = await fanOut(cells, limits.fanOut, async ({ cell, locationHint }) => {
    const leftMs = Math.min(LEDGER_MS, untilMs - clock.now());
    if (leftMs <= 0) return undefined;
    const answer = await ask(clock, leftMs, async () =>
      objects.ledger(cell, locationHint).seenShards(driver.envelope),
    );
    return answer.kind === "ok" ? { cell, points: answer.value } : undefined;
  });
  const byShard = new Map<number, ShardSighting[]>();
  for (const { cell, points } of answers.flatMap((answer) => answer ?? []))
    for (const [shard, point] of Object.entries(points))
      byShard.set(Number(shard), addTo(byShard.get(Number(shard)) ?? [], { cell, point }));
  return { byShard, areComplete: answers.every((answer) => answer !== undefined) };
}

/** The cells that are not removed. Undefined: the directory can't be asked, or may have forgotten some. */
async function readCells(
  driver: GrowthDriver,
): Promise<{ cell: string; locationHint: string | null }[] | undefined> {
  const seen = await readSeen(driver.database);
  if (!seen.ok) return undefined;
  // A directory that went back notices it here (H4).
  const known = seen.value.point === undefined ? {} : { seen: seen.value.point };
  const answer = await askAgain(driver, ({ envelope, objects }) =>
    objects.directory().snapshot({ ...envelope, ...known }),
  );
  return answer.ok ? answer.value.cells.filter(({ removedAtMs }) => removedAtMs === null) : undefined;
}

/** Only the newest point of each incarnation is needed. */
function addTo(sightings: readonly ShardSighting[], added: ShardSighting): ShardSighting[] {
  const { incarnation, position } = added.point;
  const known = sightings.find(({ point }) => point.incarnation === incarnation);
  if (known !== undefined && known.point.position >= position) return [...sightings];
  return [...sightings.filter((each) => each !== known), added];
}

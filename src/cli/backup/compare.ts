import type { Client } from "../../users/client/index.ts";
import { isLeaseholdError } from "../../users/client/index.ts";
import { DigestSum } from "../../common/digest.ts";
import type { Io } from "../framework/io.ts";
import { countOf } from "../../common/text/count-of.ts";
import { orderSources, sectionOf } from "./changed-claims.ts";
import { otherCell, untilAnswered } from "./deployment-cells.ts";
import type { Backup } from "./read-backup.ts";

/** What a comparison with the deployment has found, in ranges of some thousand claims. */
export interface Comparison {
  /** Equal to the backup. */
  verified: number;
  /** Equal to the backup and the changes that came after it. */
  changed: number;
  /** Not comparable, because open leases touch them. */
  held: number;
  different: readonly {
    cell_id: string;
    source_type: string;
    after: string | null;
    through: string | null;
  }[];
  /** The changes after the backup can no longer be read, so differences prove nothing. */
  is_outdated: boolean;
}

interface Range {
  cell: string;
  sourceType: string;
  /** Source ids above it. Undefined: from the beginning. */
  after: string | undefined;
  /** Source ids up to it. Undefined: to the end. */
  through: string | undefined;
  sum: DigestSum;
  isHeld: boolean;
}

const CLAIMS_PER_RANGE = 2_000;
export const RANGES_PER_CALL = 32;
/** How often ranges that differ are compared again, with the changes that came meanwhile. */
const ROUNDS = 5;
const PAUSE_MS = 2_000;
const PAGE_SIZE = 1_000;
/** The client returns as many digests as ranges. */
const VOID = { held: true, count: 0, hash: "" };

/** Compares all claims of a backup with those of the deployment. */
export async function compare(io: Io, client: Client, backup: Backup): Promise<Comparison> {
  const reader = new DigestReader(io, client);
  // The changes of another deployment, such as one that was restored, do not continue the backup.
  const isSame = (await otherCell(io, client, backup.header)) === undefined;
  for await (const range of rangesOf(backup)) await reader.add(range);
  await reader.flush();
  let { unequal } = reader;
  const verified = reader.count - unequal.length;
  let { checkpoint } = backup.found;
  let isOutdated = false;
  const differed = unequal.length;
  for (let round = 1; round <= ROUNDS && unequal.length > 0; round += 1) {
    if (!isSame && !unequal.some(({ isHeld }) => isHeld)) break;
    await io.err.write(`${countOf(unequal.length, "range")} not equal yet: comparing again\n`);
    await io.wait(PAUSE_MS);
    const caughtUp = isSame ? await catchUp(io, client, backup, checkpoint) : checkpoint;
    isOutdated = caughtUp === undefined;
    if (caughtUp === undefined) break;
    checkpoint = caughtUp;
    unequal = await compareAgain(new DigestReader(io, client), backup, unequal);
  }
  const held = unequal.filter(({ isHeld }) => isHeld).length;
  return {
    verified,
    changed: differed - unequal.length,
    held,
    different: unequal
      .filter(({ isHeld }) => !isHeld)
      .map(({ cell, sourceType, after = null, through = null }) => ({
        cell_id: cell,
        source_type: sourceType,
        after,
        through,
      })),
    is_outdated: isOutdated,
  };
}

/** Applies the changes after a checkpoint. Returns the newest one; undefined if changes are missing. */
async function catchUp(io: Io, client: Client, backup: Backup, from: string): Promise<string | undefined> {
  for (let after = from; ;) {
    try {
      const page = await untilAnswered(io, () => client.changes.page({ after, pageSize: PAGE_SIZE }));
      backup.apply(page.changes);
      after = page.checkpoint;
      if (!page.hasMore && page.unavailable.length === 0) return after;
    } catch (error) {
      if (isLeaseholdError(error) && error.reason === "CHANGES_PRUNED") return undefined;
      throw error;
    }
  }
}

async function compareAgain(
  reader: DigestReader,
  backup: Backup,
  ranges: readonly Range[],
): Promise<Range[]> {
  const bySection = new Map<string, { ranges: Range[]; at: number }>();
  for (const range of ranges) {
    const section = sectionOf(range.cell, range.sourceType);
    const again = { ...range, sum: new DigestSum(), isHeld: false };
    const known = bySection.get(section);
    if (known === undefined) bySection.set(section, { ranges: [again], at: 0 });
    else known.ranges.push(again);
  }
  // Claims and ranges of a section have the same order.
  for await (const claim of backup.claims()) {
    const section = bySection.get(sectionOf(claim.cell, claim.source.type));
    if (section === undefined) continue;
    const { id } = claim.source;
    let range = section.ranges[section.at];
    while (range?.through !== undefined && orderSources(id, range.through) > 0)
      range = section.ranges[(section.at += 1)];
    if (range !== undefined && (range.after === undefined || orderSources(id, range.after) > 0))
      range.sum.add(backup.wordsOf(claim));
  }
  for (const section of bySection.values()) for (const range of section.ranges) await reader.add(range);
  await reader.flush();
  return reader.unequal;
}

/** Ranges that together cover all source ids of every section, also of those without claims. */
async function* rangesOf(backup: Backup): AsyncGenerator<Range, void, undefined> {
  const { header, cells, typeSet } = backup;
  const left = new Map<string, [cell: string, sourceType: string]>();
  const owners = cells.filter(({ removed_at: removedAt }) => removedAt === null);
  const sourceTypes = new Set([...header.source_types, ...Object.keys(typeSet.source_types)]);
  for (const { cell_id: cell } of owners)
    for (const sourceType of sourceTypes) left.set(sectionOf(cell, sourceType), [cell, sourceType]);
  let range: Range | undefined;
  let last = "";
  for await (const claim of backup.claims()) {
    const { cell, source } = claim;
    if (range !== undefined && (range.cell !== cell || range.sourceType !== source.type)) {
      yield range;
      range = undefined;
    } else if (range !== undefined && range.sum.count >= CLAIMS_PER_RANGE && source.id !== last) {
      yield { ...range, through: last };
      range = rangeOf(cell, source.type, last);
    }
    range ??= rangeOf(cell, source.type, undefined);
    range.sum.add(backup.wordsOf(claim));
    last = source.id;
    left.delete(sectionOf(cell, source.type));
  }
  if (range !== undefined) yield range;
  for (const [cell, sourceType] of left.values()) yield rangeOf(cell, sourceType, undefined);
}

const rangeOf = (cell: string, sourceType: string, after: string | undefined): Range => ({
  cell,
  sourceType,
  after,
  through: undefined,
  sum: new DigestSum(),
  isHeld: false,
});

/** Compares ranges with the digests of the deployment, some of one section with each call. */
class DigestReader {
  readonly #io: Io;
  readonly #client: Client;
  #waiting: Range[] = [];
  count = 0;
  unequal: Range[] = [];

  constructor(io: Io, client: Client) {
    this.#io = io;
    this.#client = client;
  }

  async add(range: Range): Promise<void> {
    const [first] = this.#waiting;
    const isOther =
      first !== undefined && (first.cell !== range.cell || first.sourceType !== range.sourceType);
    if (isOther || this.#waiting.length >= RANGES_PER_CALL) await this.flush();
    this.#waiting.push(range);
    this.count += 1;
  }

  async flush(): Promise<void> {
    const ranges = this.#waiting;
    this.#waiting = [];
    const [first] = ranges;
    if (first === undefined) return;
    const { digests } = await untilAnswered(this.#io, () =>
      this.#client.forCell(first.cell).records.digests({
        sourceType: first.sourceType as never,
        ranges: ranges.map(({ after, through }) => ({ sourceIdGt: after, sourceIdLte: through })),
      }),
    );
    for (const [at, range] of ranges.entries()) {
      // A void digest is equal to nothing (R4).
      const { held: isHeld, count, hash } = digests[at] ?? VOID;
      if (isHeld || count !== range.sum.count || hash !== range.sum.hash)
        this.unequal.push({ ...range, isHeld });
    }
  }
}

import type { BucketKey, LookupFound, Verdict } from "../messages.ts";
import type { Traces } from "../traces.ts";
import type { Inquirer } from "./inquirer.ts";
import type { AskedHold } from "./inquiry-queue.ts";
import { mayBeCut, type RangeHoldRow, type RangeHolds } from "../../capabilities/transfer/range-holds.ts";
import { recordOfClaim, recordOfHold } from "./record.ts";
import { executionKey, type ClaimRow, type HoldRow } from "./rows.ts";
import type { ShardStore } from "./store.ts";

/**
 * The number of times that a read inquires about holds. The key of a hold may get another hold while its
 * ledger is asked. After this many such changes, the answer is what the key shows without its last hold: that
 * was true between the end of the hold before it and its own beginning, because a claim doesn't change while
 * it is held.
 */
export const MAX_ROUNDS = 3;

const NO_VERDICTS: ReadonlyMap<string, Verdict> = new Map();

/** What a key shows. `ask`: its hold must be asked about. `without` is what it shows without the hold. */
type Read<Hold extends AskedHold = HoldRow> = LookupFound | { kind: "ask"; hold: Hold; without: LookupFound };

/** What a lookup has read of a key, and whether the key had a hold that may change what it shows (Q2). */
interface KeyRead {
  read: Read<AskedHold>;
  isHeld: boolean;
}

/** What is stored about a key. */
export interface Stored {
  claim: ClaimRow | undefined;
  hold: HoldRow | undefined;
}

interface Needs {
  readonly store: ShardStore;
  readonly ranges: Pick<RangeHolds, "over">;
  readonly inquirer: Inquirer;
}

/** Reads what keys show (R2). It keeps nothing in memory between two calls. */
export class ShardReader {
  readonly #part: Needs;

  constructor(part: Needs) {
    this.#part = part;
  }

  /** Returns one answer per key, in order (R2). `isSettled`: the first turn found no hold on the key (Q2). */
  async lookup(
    keys: readonly BucketKey[],
    traces: Traces,
  ): Promise<{ found: LookupFound; isSettled: boolean }[]> {
    let reads = keys.map((key) => this.#read(key, NO_VERDICTS));
    const settled = reads.map(({ isHeld }) => !isHeld);
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const holds = reads.flatMap(({ read }) => (read.kind === "ask" ? [read.hold] : []));
      if (holds.length === 0) break;
      const verdicts = await this.#part.inquirer.inquire(holds, traces);
      // The key is read again after the answer, because the hold may be gone or replaced by now (M1).
      reads = keys.map((key, index) => {
        const known = reads[index];
        return known === undefined || known.read.kind === "ask" ? this.#read(key, verdicts) : known;
      });
    }
    return reads.map(({ read }, index) => ({
      found: read.kind === "ask" ? read.without : read,
      isSettled: settled[index] === true,
    }));
  }

  #read(key: BucketKey, verdicts: ReadonlyMap<string, Verdict>): KeyRead {
    const claim = this.#part.store.claim(key);
    const range = this.#part.ranges.over(claim);
    if (claim !== undefined && range !== undefined)
      return { read: shownInRange(claim, range, verdicts), isHeld: range.is_precommitted === 1 };
    const hold = this.#part.store.holdOn(key.type, key.canonical);
    return { read: shown({ claim, hold }, verdicts), isHeld: hold !== undefined };
  }
}

/**
 * What a key shows. Only the ledger of a hold knows whether its lease is granted or already decided, so
 * nothing is shown from a hold without asking (R2).
 */
export function shown({ claim, hold }: Stored, verdicts: ReadonlyMap<string, Verdict>): Read {
  const without: LookupFound =
    claim === undefined ? { kind: "none" } : { kind: "record", record: recordOfClaim(claim) };
  if (hold === undefined) return without;
  switch (verdicts.get(executionKey(hold))) {
    case "granted":
      if (claim !== undefined) return { kind: "record", record: recordOfClaim(claim, hold) };
      // A replace arrives at its place only when it is committed.
      return hold.kind === "create" ? { kind: "record", record: recordOfHold(hold) } : without;
    case "running":
      return without;
    case "unknown":
      return { kind: "unknown" };
    default:
      return { kind: "ask", hold, without };
  }
}

/**
 * What a claim shows that a transfer moves (Y4). Once the transfer is precommitted, only the destination's
 * ledger knows whether it was cut, unless the shard has learned it. Then the claim shows as it will be when
 * it is rewritten.
 */
function shownInRange(
  claim: ClaimRow,
  range: RangeHoldRow,
  verdicts: ReadonlyMap<string, Verdict>,
): Read<AskedHold> {
  const { cell, epoch, cut_at_ms: cutAtMs, lease } = range;
  const record = recordOfClaim(claim);
  if (cutAtMs !== null) {
    const updatedAtMs = Math.max(cutAtMs, record.updatedAtMs);
    return { kind: "record", record: { ...record, cell, epoch, updatedAtMs } };
  }
  const without: LookupFound = { kind: "record", record };
  const held: LookupFound = { kind: "record", record: { ...record, lease, transferTo: cell } };
  if (!mayBeCut(range)) return held;
  switch (verdicts.get(executionKey(range))) {
    case "granted":
      return held;
    case "running":
      return without;
    case "unknown":
      return { kind: "unknown" };
    default:
      return { kind: "ask", hold: range, without };
  }
}

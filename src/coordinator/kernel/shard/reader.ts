import type { BucketKey, LookupFound, Verdict } from "../messages.ts";
import type { Traces } from "../traces.ts";
import type { Inquirer } from "./inquirer.ts";
import { recordOfClaim, recordOfHold, type KeyRead, type Read } from "./record.ts";
import { executionKey, type ClaimRow, type HoldRow } from "./rows.ts";
import type { Slot } from "../slot.ts";
import type { ShardStore } from "./store.ts";
import type { WideHolds } from "./wide-holds.ts";

/**
 * The number of times that a read inquires about holds. The key of a hold may get another hold while its
 * ledger is asked. After this many such changes, the answer is what the key shows without its last hold: that
 * was true between the end of the hold before it and its own beginning, because a claim doesn't change while
 * it is held.
 */
export const MAX_ROUNDS = 3;

const NO_VERDICTS: ReadonlyMap<string, Verdict> = new Map();

/** What is stored about a key. */
export interface Stored {
  claim: ClaimRow | undefined;
  hold: HoldRow | undefined;
}

interface Needs {
  readonly store: ShardStore;
  readonly wide: Slot<Pick<WideHolds, "shown">>;
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
    const wide = claim && this.#part.wide.current.shown(claim, verdicts);
    if (wide !== undefined) return wide;
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

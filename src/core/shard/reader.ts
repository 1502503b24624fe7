import type {
  BucketKey,
  ListRecordsAnswer,
  ListRecordsRequest,
  LookupFound,
  Reply,
  Verdict,
} from "../messages.ts";
import { ok, refused } from "../refusal.ts";
import { bucketTypes, sourceTypes } from "../registry.ts";
import { compareBytes } from "../source-order.ts";
import { executionKey, type Inquirer } from "./inquirer.ts";
import { bySource, recordOfClaim, recordOfHold } from "./record.ts";
import type { CreateHoldRow, HeldClaimRow, HoldRow } from "./rows.ts";
import { SOURCE_ORDER_END, type ShardStore } from "./store.ts";

/**
 * The number of times that a read inquires about holds. The key of a hold may get another hold while its
 * ledger is asked. After this many such changes, the key was free in between, so the answer is "not found".
 */
const MAX_ROUNDS = 3;

/**
 * The largest size to which a page grows in order to contain all records of one source id. No row has nearly
 * as many names, and an answer between objects has room for more.
 */
const MAX_PAGE_ROWS = 10_000;

/**
 * The largest number of claims, and of holds, that a caller gets in one page before the last source id is
 * completed.
 */
const MAX_SHARE = MAX_PAGE_ROWS / 4;

const NO_VERDICTS: ReadonlyMap<string, Verdict> = new Map();

type Read = LookupFound | { kind: "ask"; hold: HoldRow };

interface Page {
  claims: HeldClaimRow[];
  holds: CreateHoldRow[];
  through: string;
  complete: boolean;
}

/** Everything that only reads (R2, R3). It keeps nothing in memory between two calls. */
export class ShardReader {
  readonly #store: ShardStore;
  readonly #inquirer: Inquirer;

  constructor(store: ShardStore, inquirer: Inquirer) {
    this.#store = store;
    this.#inquirer = inquirer;
  }

  /** Returns one answer per key, in order (R2). */
  async lookup(keys: readonly BucketKey[]): Promise<LookupFound[]> {
    let reads = keys.map((key) => this.#read(key, NO_VERDICTS));
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const holds = reads.flatMap((read) => (read.kind === "ask" ? [read.hold] : []));
      if (holds.length === 0) break;
      const verdicts = await this.#inquirer.inquire(holds);
      // The key is read again after the answer, because the hold may be gone or replaced by now (M1).
      reads = keys.map((key, index) => {
        const read = reads[index];
        return read === undefined || read.kind === "ask" ? this.#read(key, verdicts) : read;
      });
    }
    return reads.map((read) => (read.kind === "ask" ? { kind: "none" } : read));
  }

  /**
   * Reads one key. A create hold is shown only while its lease is granted, and only its ledger knows that.
   */
  #read(key: BucketKey, verdicts: ReadonlyMap<string, Verdict>): Read {
    const claim = this.#store.claim(key);
    if (claim !== undefined) return { kind: "record", record: recordOfClaim(claim) };
    const hold = this.#store.hold(key);
    if (hold === undefined || hold.kind !== "create") return { kind: "none" };
    switch (verdicts.get(executionKey(hold))) {
      case "granted":
        return { kind: "record", record: recordOfHold(hold) };
      case "running":
        return { kind: "none" };
      case "unknown":
        return { kind: "unknown" };
      default:
        return { kind: "ask", hold };
    }
  }

  /**
   * Returns a page that never splits the records of one source id (R3): up to `limit` records, and then the
   * rest of the last source id. The first read fixes the range of the page. If the range could grow when
   * holds end in the meantime, it would include holds that were not inquired about.
   */
  async listRecords(request: ListRecordsRequest): Promise<Reply<ListRecordsAnswer>> {
    const verdicts = new Map<string, Verdict>();
    const first = this.#page({ ...request, limit: Math.min(request.limit, MAX_SHARE) });
    const range: ListRecordsRequest = {
      ...request,
      upTo: first.through === SOURCE_ORDER_END ? request.upTo : first.through,
      limit: MAX_PAGE_ROWS,
    };
    let page = first;
    for (let round = 0; ; round += 1) {
      const asks = page.holds.filter((hold) => !verdicts.has(executionKey(hold)));
      // Holds that appear in a fixed range after the first rounds are newer than the call, so the page may
      // leave them out.
      if (asks.length === 0 || round === MAX_ROUNDS) break;
      for (const [key, verdict] of await this.#inquirer.inquire(asks)) verdicts.set(key, verdict);
      page = this.#page(range);
    }
    if (page.claims.length + page.holds.length >= MAX_PAGE_ROWS) {
      return refused(
        "RESOURCE_EXHAUSTED",
        `one source id has ${MAX_PAGE_ROWS} or more records, which do not fit into a page; ` +
          "destroy some of them",
      );
    }
    return this.#answer({ ...page, through: first.through, complete: first.complete }, verdicts);
  }

  #answer(
    { claims, holds, through, complete }: Page,
    verdicts: ReadonlyMap<string, Verdict>,
  ): Reply<ListRecordsAnswer> {
    const holdVerdicts = holds.map((hold) => verdicts.get(executionKey(hold)));
    if (holdVerdicts.includes("unknown"))
      return refused(
        "UNAVAILABLE",
        "the cell's ledger did not say which of its leases are granted; retry the call",
      );
    const granted = holds.filter((_, index) => holdVerdicts[index] === "granted");
    const records = [...claims.map(recordOfClaim), ...granted.map(recordOfHold)];
    return ok({ records: records.toSorted(bySource), through, complete });
  }

  #page({ cell, sourceType, bucketTypes: typeNames, after, upTo, limit }: ListRecordsRequest): Page {
    const source = sourceTypes[sourceType].number;
    const types = JSON.stringify(typeNames.map((type) => bucketTypes[type].number));
    const claims = wholeIds(limit, after, upTo ?? SOURCE_ORDER_END, (from, to, maxRows) =>
      this.#store.claimsBySource(cell, source, types, from, to, maxRows),
    );
    const holds = wholeIds(limit, after, claims.end, (from, to, maxRows) =>
      this.#store.createHoldsBySource(cell, source, types, from, to, maxRows),
    );
    return {
      claims: claims.rows.filter((row) => compareBytes(row.source_order, holds.end) <= 0),
      holds: holds.rows,
      through: holds.end,
      complete: holds.end === (upTo ?? SOURCE_ORDER_END),
    };
  }
}

/**
 * Returns up to `limit` rows of (after, upTo], and then the remaining rows of the last source id. The result
 * is complete up to the source order `end`.
 */
function wholeIds<Row extends { source_order: string }>(
  limit: number,
  after: string,
  upTo: string,
  fetch: (after: string, upTo: string, limit: number) => Row[],
): { rows: Row[]; end: string } {
  const rows = fetch(after, upTo, limit + 1);
  const last = rows[limit - 1];
  const next = rows[limit];
  if (last === undefined || next === undefined) return { rows, end: upTo };
  const end = last.source_order;
  if (next.source_order !== end) return { rows: rows.slice(0, limit), end };
  const before = rows.filter((row) => row.source_order !== end);
  return { rows: [...before, ...fetch(before.at(-1)?.source_order ?? after, end, MAX_PAGE_ROWS)], end };
}

import type { Limits } from "../../../common/limits.ts";
import type {
  BucketKey,
  ArrivalScan,
  ListCursor,
  ListRecordsAnswer,
  ListRecordsRequest,
  LookupFound,
  RecordPosition,
  Verdict,
} from "../messages.ts";
import { ok, refused, type Result } from "../refusal.ts";
import type { Traces } from "../traces.ts";
import { FIRST_HOLD } from "./held-names.ts";
import type { Inquirer } from "./inquirer.ts";
import type { AskedHold } from "./inquiry-queue.ts";
import type { ClaimReads } from "./read-queue.ts";
import { mayBeCut, type RangeHoldRow, type RangeHolds } from "../../capabilities/transfer/range-holds.ts";
import { bySource, comparePositions, recordOfClaim, recordOfHold } from "./record.ts";
import { executionKey, type ArrivingHoldRow, type ClaimRow, type HoldRow } from "./rows.ts";
import {
  afterSource,
  isArrivalIn,
  positionOf,
  SOURCE_ORDER_END,
  type ClaimRange,
  type ScanStore,
  type WantedTypes,
} from "../../capabilities/records/scan-store.ts";
import type { ShardLog } from "./shard-log.ts";
import type { ShardStore } from "./store.ts";

/**
 * The number of times that a read inquires about holds. The key of a hold may get another hold while its
 * ledger is asked. After this many such changes, the answer is what the key shows without its last hold: that
 * was true between the end of the hold before it and its own beginning, because a claim doesn't change while
 * it is held.
 */
const MAX_ROUNDS = 3;

/** What the first turn of a listing has read. `first` is undefined if it ended with the scan of the holds. */
interface Begun {
  scan: ArrivalScan;
  first: Piece | undefined;
}

const NO_VERDICTS: ReadonlyMap<string, Verdict> = new Map();

/** What a key shows. `ask`: its hold must be asked about. `without` is what it shows without the hold. */
type Read<Hold extends AskedHold = HoldRow> = LookupFound | { kind: "ask"; hold: Hold; without: LookupFound };

/** What a lookup has read of a key, and whether the key had a hold that may change what it shows (Q2). */
interface KeyRead {
  read: Read<AskedHold>;
  isHeld: boolean;
}

/** What is stored about a key. */
interface Stored {
  claim: ClaimRow | undefined;
  hold: HoldRow | undefined;
}

/** The claims and arriving holds up to a position of the list, in any order. */
interface Piece {
  stored: Stored[];
  through: RecordPosition;
  /** Roughly how many rows were read for it. */
  rows: number;
}

interface Needs {
  readonly store: ShardStore;
  readonly scans: ScanStore;
  readonly log: Pick<ShardLog, "held">;
  readonly ranges: Pick<RangeHolds, "over">;
  readonly inquirer: Inquirer;
  readonly claimReads: ClaimReads;
  readonly limits: Pick<Limits, "scanRows">;
}

/** Everything that only reads (R2, R3). It keeps nothing in memory between two calls. */
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

  /**
   * Returns the next records of a list, as far as one message gets (R3, M7). The scan of the holds comes
   * before the claims: a hold that becomes a claim in between is then found as a claim.
   */
  async listRecords(request: ListRecordsRequest): Promise<Result<ListRecordsAnswer>> {
    const limit = Math.min(request.limit, recordsIn(this.#part.limits.scanRows));
    const types = request.bucketTypes;
    const range: ClaimRange = {
      cell: request.cell,
      sourceType: request.sourceType,
      after: request.cursor?.behind ?? afterSource(request.after),
      upTo: afterSource(request.upTo ?? SOURCE_ORDER_END),
    };
    const begun = await this.#part.claimReads.run<Begun>(request.cell, () => {
      const { scan, rows } = this.#scanArrivals(range, types, request.cursor?.scan ?? null, limit);
      // The next message has more room for records, and finds the scan complete.
      if (rows > this.#part.limits.scanRows / 2) return { value: { scan, first: undefined }, rows };
      const upTo = (scan.isCut ? scan.found.at(-1) : undefined) ?? range.upTo;
      const room = this.#part.limits.scanRows - rows;
      const first = this.#piece({ ...range, upTo }, types, scan.found, limit, room);
      return { value: { scan, first }, rows: rows + first.rows };
    });
    if (!begun.ok) return begun;
    const { scan, first } = begun.value;
    if (first === undefined) return ok({ records: [], next: { behind: range.after, scan } });
    // The first read fixes the range. Later reads may end earlier, but never later: a longer range could
    // include holds that the scan left out.
    const verdicts = new Map<string, Verdict>();
    let piece = first;
    for (let round = 0; ; round += 1) {
      const held = piece.stored.filter(({ hold }) => hold !== undefined);
      const asks = held.flatMap((stored) => {
        const read = shown(stored, verdicts);
        return read.kind === "ask" ? [read.hold] : [];
      });
      if (asks.length === 0 || round === MAX_ROUNDS) break;
      for (const [key, verdict] of await this.#part.inquirer.inquire(asks, request.traces))
        verdicts.set(key, verdict);
      const { through } = piece;
      const again = await this.#part.claimReads.run<Piece>(request.cell, () => {
        const value = this.#piece(
          { ...range, upTo: through },
          types,
          scan.found,
          limit,
          this.#part.limits.scanRows,
        );
        return { value, rows: value.rows };
      });
      if (!again.ok) return again;
      piece = again.value;
    }
    const isLast = comparePositions(piece.through, range.upTo) >= 0;
    return answerOf(piece, verdicts, isLast ? null : { behind: piece.through, scan: null });
  }

  /**
   * Continues the scan for the holds that arrive in a range. Keeps the first `limit` of them in list order.
   * If it visits at most half of the rows of a message, it is complete.
   */
  #scanArrivals(
    range: ClaimRange,
    types: WantedTypes,
    before: ArrivalScan | null,
    limit: number,
  ): { scan: ArrivalScan; rows: number } {
    const { behind, found: earlier, isCut } = before ?? { behind: FIRST_HOLD, found: [], isCut: false };
    const { held } = this.#part.log;
    const { entries, count, next } =
      behind === null
        ? { entries: [], count: 0, next: null }
        : held.after(behind, this.#part.limits.scanRows, range.cell);
    const found = this.#part.scans.arrivals(range, types, entries, limit + 1);
    const all = [...earlier, ...found].toSorted(comparePositions);
    const scan = { behind: next, found: all.slice(0, limit), isCut: isCut || all.length > limit };
    return { scan, rows: count };
  }

  /**
   * Reads the claims of a range with their holds, and the arriving holds among `found`, as far as it gets: up
   * to `mostRecords`, and up to as many as fit into `room`.
   */
  #piece(
    range: ClaimRange,
    types: WantedTypes,
    found: readonly RecordPosition[],
    mostRecords: number,
    room: number,
  ): Piece {
    const limit = room < this.#part.limits.scanRows ? Math.min(mostRecords, recordsIn(room)) : mostRecords;
    // Without a filter, every claim that is visited is a record.
    const visits = types === null ? limit + 1 : room;
    const cut = this.#part.scans.claimPosition(range, visits);
    const end = cut ?? range.upTo;
    const claims = this.#part.scans.claims({ ...range, upTo: end }, types, limit + 1);
    const holds = found
      .map(([, bucketType, canonical]) => this.#part.store.holdOn(bucketType, canonical))
      .filter((hold) => isArrivalIn(hold, { ...range, upTo: end }));
    const positions = [...claims, ...holds].map(positionOf).toSorted(comparePositions);
    const through = positions.length > limit ? (positions[limit - 1] ?? end) : end;
    const isRead = (row: ArrivingHoldRow | ClaimRow): boolean =>
      comparePositions(positionOf(row), through) <= 0;
    const rows = (claims.length + holds.length) * ROWS_PER_RECORD + (cut === undefined ? 0 : visits);
    const stored = [
      ...claims.filter(isRead).map((claim) => ({
        claim,
        hold: this.#part.store.holdOn(claim.bucket_type, claim.canonical),
      })),
      ...holds.filter(isRead).map((hold) => ({ claim: undefined, hold })),
    ];
    return { stored, through, rows };
  }
}

/** A record takes as long as this number of index entries. */
const ROWS_PER_RECORD = 4;

/** The number of records that take as long as these rows. */
const recordsIn = (rows: number): number => Math.ceil(rows / ROWS_PER_RECORD);

/**
 * What a key shows. Only the ledger of a hold knows whether its lease is granted or already decided, so
 * nothing is shown from a hold without asking (R2).
 */
function shown({ claim, hold }: Stored, verdicts: ReadonlyMap<string, Verdict>): Read {
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

function answerOf(
  { stored }: Piece,
  verdicts: ReadonlyMap<string, Verdict>,
  next: ListCursor | null,
): Result<ListRecordsAnswer> {
  const found = stored.map((each) => {
    const read = shown(each, verdicts);
    return read.kind === "ask" ? read.without : read;
  });
  if (found.some(({ kind }) => kind === "unknown"))
    return refused(
      "UNAVAILABLE",
      "the cell's ledger did not say which of its leases are granted; retry the call",
    );
  const records = found.flatMap((each) => (each.kind === "record" ? [each.record] : []));
  return ok({ records: records.toSorted(bySource), next });
}

import type { Limits } from "../../../common/limits.ts";
import type { Verdict } from "../../kernel/messages.ts";
import { ok, refused, type Result } from "../../kernel/refusal.ts";
import { FIRST_HOLD } from "../../kernel/shard/held-names.ts";
import type { Inquirer } from "../../kernel/shard/inquirer.ts";
import type { ClaimReads } from "../../kernel/shard/read-queue.ts";
import { MAX_ROUNDS, shown, type Stored } from "../../kernel/shard/reader.ts";
import type { ClaimRow } from "../../kernel/shard/rows.ts";
import type { ShardLog } from "../../kernel/shard/shard-log.ts";
import type { ShardStore } from "../../kernel/shard/store.ts";
import type {
  ArrivalScan,
  ListCursor,
  ListRecordsAnswer,
  ListRecordsRequest,
  RecordPosition,
} from "./messages.ts";
import { bySource, comparePositions } from "./record-order.ts";
import {
  afterSource,
  isArrivalIn,
  positionOf,
  SOURCE_ORDER_END,
  type ClaimRange,
  type ScanStore,
  type WantedTypes,
  type ArrivingHoldRow,
} from "./scan-store.ts";

/** What the first turn of a listing has read. `first` is undefined if it ended with the scan of the holds. */
interface Begun {
  scan: ArrivalScan;
  first: Piece | undefined;
}

/** The claims and arriving holds up to a position of the list, in any order. */
interface Piece {
  stored: Stored[];
  through: RecordPosition;
  /** Roughly how many rows were read for it. */
  rows: number;
}

interface Needs {
  readonly store: Pick<ShardStore, "holdOn">;
  readonly scans: ScanStore;
  readonly log: Pick<ShardLog, "held">;
  readonly inquirer: Pick<Inquirer, "inquire">;
  readonly claimReads: ClaimReads;
  readonly limits: Pick<Limits, "scanRows">;
}

/** Lists of a cell's records (R3). It keeps nothing in memory between two calls. */
export class RecordReader {
  readonly #part: Needs;

  constructor(part: Needs) {
    this.#part = part;
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

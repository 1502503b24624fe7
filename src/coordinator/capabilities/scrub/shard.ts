import type { Limits } from "../../../common/limits.ts";
import type { HoldPosition, Verdict } from "../../kernel/messages.ts";
import type { CheckHolds, HoldCheck, ScrubKind, ScrubStep, ScrubTable } from "./messages.ts";
import { shardsOf } from "../../kernel/placement.ts";
import type { SqlValue, Ports } from "../../kernel/ports.ts";
import { ok, refused, type Result } from "../../kernel/refusal.ts";
import { nothingChecked, type NewFinding, type ScrubCursor, type ScrubProgress } from "./scrub.ts";
import { FIRST_HOLD } from "../../kernel/shard/held-names.ts";
import type { Inquirer } from "../../kernel/shard/inquirer.ts";
import { transfersOn } from "../transfer/index.ts";
import type { RangeHoldRow } from "../transfer/range-holds.ts";
import type { ReadQueue } from "../../kernel/shard/read-queue.ts";
import {
  faultsOfClaim,
  faultsOfHold,
  faultsOfPastClaim,
  faultsOfRangeHold,
  type CheckedPastClaim,
  type RowContext,
} from "./row-checks.ts";
import {
  bucketOf,
  bucketText,
  executionKey,
  type AskedHold,
  type ClaimRow,
  type HoldRow,
} from "../../kernel/shard/rows.ts";
import { claimsOn } from "../../kernel/shard/store.ts";
import type { ShardLog } from "../../kernel/shard/shard-log.ts";
import type { ShardPart } from "../../kernel/shard/part.ts";

/** The rows that are read and checked without a pause. */
const PIECE_ROWS = 250;

/** Checking a row takes about as long as listing four of them: two SHA-256 and a canonical form. */
const COST_OF_ROW = 4;

/** The tables of a shard, in the order in which a pass reads them, with where each of them begins. */
const TABLES = ["holds", "claims", "past_claims", "range_holds"] as const;
type ShardTable = (typeof TABLES)[number];
const FIRST = {
  holds: FIRST_HOLD,
  claims: [0, ""],
  past_claims: [0, 0, "", 0],
  range_holds: ["", ""],
} as const;

/** Each reads a limited number of rows in the order of a primary key; a test checks the query plans. */
export const scrubStatements: Readonly<Record<Exclude<ShardTable, "holds">, string>> = {
  claims: `SELECT * FROM claim
    WHERE (bucket_type, canonical) > (?, ?) ORDER BY bucket_type, canonical LIMIT ?`,
  past_claims: `SELECT past.segment, past.bucket_type, past.canonical, past.epoch, past.value, past.cell,
       past.ended_by, claim.epoch AS claim_epoch
     FROM past_claim AS past LEFT JOIN claim USING (bucket_type, canonical)
    WHERE (past.segment, past.bucket_type, past.canonical, past.epoch) > (?, ?, ?, ?)
    ORDER BY past.segment, past.bucket_type, past.canonical, past.epoch LIMIT ?`,
  range_holds: `SELECT * FROM range_hold
    WHERE (scope, from_cell) > (?, ?) ORDER BY scope, from_cell LIMIT ?`,
};

/** What was read in one turn. */
interface Piece {
  rows: number;
  findings: NewFinding[];
  /** The holds that are old enough to be asked about. */
  holds: AskedHold[];
  next: ScrubCursor | null;
}

interface Needs {
  readonly index: number;
  readonly limits: Limits;
  readonly reads: ReadQueue;
  readonly inquirer: Inquirer;
  readonly log: Pick<ShardLog, "position" | "held">;
  readonly ports: Pick<Ports, "sql" | "clock">;
}

/** Checks the rows of a shard, alone (Z2) and against the ledgers of its holds (Z3). */
export class ShardScrub {
  readonly #part: Needs;

  constructor(part: Needs) {
    this.#part = part;
  }

  /** Checks up to `scanRows` rows, in pieces, with other work in between. */
  async check(cursor: ScrubCursor | null, step: ScrubStep): Promise<Result<ScrubProgress>> {
    const rules = new Map(step.rules);
    const shards = shardsOf(step.placement);
    const progress = nothingChecked(cursor ?? { table: "holds", behind: FIRST.holds });
    for (let left = this.#part.limits.scanRows; left > 0 && progress.next !== null;) {
      const at = progress.next;
      const read = await this.#part.reads.run(SCRUB, () => {
        const context = { shard: this.#part.index, shards, position: this.#part.log.position, rules };
        const value = this.#piece(at, Math.min(left, PIECE_ROWS), context);
        return { value, rows: COST_OF_ROW * value.rows };
      });
      // What was checked before counts, so that a busy shard is checked too.
      if (!read.ok) return progress.rows > 0 ? ok(progress) : read;
      const { rows, findings, holds, next } = read.value;
      progress.rows += rows;
      progress.findings.push(...findings);
      progress.next = next;
      left -= rows;
      if (holds.length > 0) this.#count(progress, await this.#part.inquirer.inquire(holds), holds);
    }
    return ok(progress);
  }

  /** A hold whose execution is over has been ended by the inquiry (B8). */
  #count(progress: ScrubProgress, verdicts: ReadonlyMap<string, Verdict>, holds: readonly AskedHold[]): void {
    for (const hold of holds) {
      const verdict = verdicts.get(executionKey(hold)) ?? "unknown";
      if (verdict === "unknown") progress.unchecked += 1;
      else if (verdict !== "granted" && verdict !== "running") progress.clearedHolds += 1;
    }
  }

  /** Reads and checks the next rows of one table, in one turn. */
  #piece({ table, behind }: ScrubCursor, limit: number, context: RowContext): Piece {
    switch (table) {
      case "holds":
        return this.#holdPiece([Number(behind[0]), Number(behind[1])], limit, context);
      case "claims": {
        const rows = this.#part.ports.sql.all<ClaimRow>(scrubStatements.claims, ...behind, limit);
        return {
          ...pieceOf(table, rows, limit, ({ bucket_type, canonical }) => [bucket_type, canonical]),
          findings: rows.flatMap((row) => findingsOf(table, row, null, faultsOfClaim(row, context))),
          holds: [],
        };
      }
      case "range_holds": {
        const rows = this.#part.ports.sql.all<RangeHoldRow>(scrubStatements.range_holds, ...behind, limit);
        return {
          ...pieceOf(table, rows, limit, ({ scope, from_cell }) => [scope, from_cell]),
          findings: rows.flatMap((row) => findingsOf(table, row, row.lease, faultsOfRangeHold(row, context))),
          // Of a cut, the shard knows the outcome.
          holds: rows.filter((row) => row.cut_at_ms === null && this.#isOld(row)),
        };
      }
      default: {
        const rows = this.#part.ports.sql.all<CheckedPastClaim>(
          scrubStatements.past_claims,
          ...behind,
          limit,
        );
        return {
          ...pieceOf("past_claims", rows, limit, (row) => [
            row.segment,
            row.bucket_type,
            row.canonical,
            row.epoch,
          ]),
          findings: rows.flatMap((row) =>
            findingsOf("past_claims", row, row.ended_by, faultsOfPastClaim(row, context)),
          ),
          holds: [],
        };
      }
    }
  }

  /** Compares the next held names with the log, and what the log has with their claims. */
  #holdPiece(behind: HoldPosition, limit: number, context: RowContext): Piece {
    const { held } = this.#part.log;
    const { entries, count, next } = held.after(behind, limit);
    const checked = entries.map((entry) => ({ entry, ...held.check(entry) }));
    const holds = checked.flatMap((each) => each.holds);
    const claims = claimsOn(
      this.#part.ports.sql,
      holds.map(({ bucket_type: type, canonical }) => ({ type, canonical })),
    );
    const faultsOf = (row: HoldRow): ScrubKind[] => {
      const claim = claims.get(bucketText(row.bucket_type, row.canonical));
      const of = { claim_cell: claim?.cell ?? null, claim_epoch: claim?.epoch ?? null };
      return faultsOfHold({ ...row, ...of }, context);
    };
    return {
      rows: count,
      findings: [
        ...checked.flatMap(({ entry, missing }) =>
          missing.flatMap((name) =>
            findingsOf("holds", { ...bucketOf(name), cell: entry.cell, epoch: null }, null, [
              "unlogged_hold",
            ]),
          ),
        ),
        ...holds.flatMap((row) => findingsOf("holds", row, row.lease, faultsOf(row))),
      ],
      holds: holds.filter((row) => this.#isOld(row)),
      next: next === null ? { table: "claims", behind: FIRST.claims } : { table: "holds", behind: [...next] },
    };
  }

  /** Younger holds mostly belong to begins that are running. A hold from the future has no age (M4). */
  #isOld({ held_at_ms: heldAtMs }: AskedHold): boolean {
    return Math.abs(this.#part.ports.clock.now() - heldAtMs) >= this.#part.limits.sweepAfterMs;
  }
}

/** Who the reads of scrubs belong to, which take their turn like those of a cell. */
const SCRUB = "scrub";

function pieceOf<Row>(
  table: ShardTable,
  rows: readonly Row[],
  limit: number,
  keyOf: (row: Row) => SqlValue[],
): Pick<Piece, "rows" | "next"> {
  const last = rows.at(-1);
  if (last !== undefined && rows.length === limit)
    return { rows: rows.length, next: { table, behind: keyOf(last) } };
  const following = TABLES[TABLES.indexOf(table) + 1];
  return {
    rows: rows.length,
    next: following === undefined ? null : { table: following, behind: FIRST[following] },
  };
}

const findingsOf = (
  table: ScrubTable,
  row: { bucket_type?: number; canonical?: string; cell: string; epoch: number | null },
  lease: string | null,
  faults: readonly ScrubKind[],
): NewFinding[] =>
  faults.map((kind) => ({
    kind,
    table,
    key:
      row.bucket_type === undefined || row.canonical === undefined
        ? null
        : { type: row.bucket_type, canonical: row.canonical },
    cell: row.cell,
    lease,
    epoch: row.epoch,
    missing: null,
  }));

/** The most keys of one message, whatever the limits of its sender are (M7). */
const MOST_KEYS = 20_000;

/** Returns which holds of granted leases are not here (Z3). */
export async function checkHolds(part: ShardPart, message: CheckHolds): Promise<Result<HoldCheck>> {
  const residence = part.residence.current;
  if (!message.executions.every(({ keys }) => keys.every((key) => residence.serves(key))))
    return { ok: false, refusal: residence.notHere() };
  const found = await part.reads.run(message.cell, () => ({
    value: missingHolds(part, message),
    rows: message.executions.reduce((sum, { keys }) => sum + keys.length, 0),
  }));
  if (!found.ok) return found;
  await part.ports.sql.flush();
  if (!found.value.ok) return found.value;
  return ok({
    missing: found.value.value,
    isReconciling: part.standing.current.incomplete !== undefined,
    seen: part.log.sightings.current.of(message.cell) ?? null,
  });
}

/** Returns the indexes of the keys that each execution does not hold. */
function missingHolds(part: ShardPart, { cell, executions }: CheckHolds): Result<number[][]> {
  const { store, index: shard } = part;
  const { ranges } = transfersOn(part);
  const all = executions.flatMap(({ keys }) => keys);
  if (all.length > MOST_KEYS)
    return refused("INVALID_ARGUMENT", `a message may ask about ${MOST_KEYS} holds, not ${all.length}`);
  const holds = store.holdsOn(all);
  return ok(
    executions.map(({ keys, range, grantedBy, ...execution }) => {
      const granted_by = grantedBy === shard ? null : grantedBy;
      const wanted = executionKey({ cell, ...execution, granted_by });
      if (range !== undefined) {
        const held = ranges.on(range);
        return held !== undefined && executionKey(held) === wanted ? [] : [0];
      }
      return keys.flatMap(({ type, canonical }, index) => {
        const hold = holds.get(bucketText(type, canonical));
        return hold !== undefined && executionKey(hold) === wanted ? [] : [index];
      });
    }),
  );
}

import { GroupCommit } from "../../kernel/group-commit.ts";
import type { Slot } from "../../kernel/slot.ts";
import type { Standing } from "../../kernel/standing.ts";
import type { Limits } from "../../../common/limits.ts";
import type {
  ScrubBegin,
  ScrubFinding,
  ScrubPass,
  ScrubStatus,
  ScrubStep,
  ScrubTable,
  ScrubWork,
} from "./messages.ts";
import { readMeta, writeMeta } from "../../kernel/meta.ts";
import type { ScrubMetrics } from "./messages.ts";
import type { Clock, Ports, Sql, SqlValue } from "../../kernel/ports.ts";
import { ok, refused, type Result } from "../../kernel/refusal.ts";

/** The findings of a pass that are kept. The others are only counted. */
export const MAX_FINDINGS = 20;

/** Where a pass continues: a table, and the key of the last row that was read. */
export interface ScrubCursor {
  table: ScrubTable;
  /** Empty: at the beginning of the table. */
  behind: readonly SqlValue[];
}

export type NewFinding = Omit<ScrubFinding, "foundAtMs">;

/** What one step has checked. */
export interface ScrubProgress {
  /** Null: all rows of the part have been read. */
  next: ScrubCursor | null;
  rows: number;
  findings: NewFinding[];
  clearedHolds: number;
  unchecked: number;
}

export const nothingChecked = (next: ScrubCursor | null): ScrubProgress => ({
  next,
  rows: 0,
  findings: [],
  clearedHolds: 0,
  unchecked: 0,
});

/** Checks the next rows. Null: from the first one. A refusal leaves the pass where it is. */
export type CheckRows = (cursor: ScrubCursor | null, step: ScrubStep) => Promise<Result<ScrubProgress>>;

export interface StoredScrub {
  running: { pass: ScrubPass; cursor: ScrubCursor } | null;
  last: ScrubPass | null;
}

const NEVER: StoredScrub = { running: null, last: null };

/**
 * The passes of one part (Z4). What they have found, and how far the running one is, is one row, which each
 * step replaces. It has transactions of its own, because it is no part of the history. A lost row costs a
 * pass.
 */
export class Scrub {
  readonly #sql: Sql;
  readonly #clock: Pick<Clock, "now">;
  readonly #everyMs: number;
  readonly #standing: Slot<Standing>;
  readonly #check: CheckRows;
  readonly #commits: GroupCommit;
  #underWay: Promise<Result<ScrubStatus>> | undefined;

  constructor(
    ports: Pick<Ports, "sql" | "clock" | "halt">,
    { scrubEveryS }: Pick<Limits, "scrubEveryS">,
    standing: Slot<Standing>,
    check: CheckRows,
  ) {
    this.#sql = ports.sql;
    this.#clock = ports.clock;
    this.#everyMs = scrubEveryS * 1_000;
    this.#standing = standing;
    this.#check = check;
    this.#commits = new GroupCommit(ports, standing);
  }

  get #state(): ScrubStatus["state"] {
    const { stopped, incomplete } = this.#standing.current;
    return stopped !== undefined ? "lost" : incomplete !== undefined ? "reconciling" : "complete";
  }

  get status(): ScrubStatus {
    const { running, last } = this.#stored;
    return { state: this.#state, running: running?.pass ?? null, last };
  }

  get work(): ScrubWork {
    const { running, last } = this.#stored;
    // The running pass finds again what the last one has found.
    const findings = Math.max(findingsOf(running?.pass ?? null), findingsOf(last));
    return { isDue: this.#isDue, findings };
  }

  get metrics(): ScrubMetrics {
    const { last } = this.#stored;
    return {
      findings: this.work.findings,
      endedAtMs: last?.endedAtMs ?? null,
      rows: last?.rows ?? 0,
      unchecked: last?.unchecked ?? 0,
    };
  }

  /** A clock that was set back makes a pass due early (M4). */
  get #isDue(): boolean {
    if (this.#everyMs === 0 || this.#state !== "complete") return false;
    const { running, last } = this.#stored;
    if (running !== null || last === null) return true;
    return Math.abs(this.#clock.now() - last.startedAtMs) >= this.#everyMs;
  }

  /** Carries out one step. Calls that arrive meanwhile share it, except those that begin a pass. */
  async step(message: ScrubStep): Promise<Result<ScrubStatus>> {
    while (this.#underWay !== undefined) {
      const shared = await this.#underWay;
      if (message.begin !== "always") return shared;
    }
    this.#underWay = this.#step(message).finally(() => {
      this.#underWay = undefined;
    });
    return this.#underWay;
  }

  async #step(message: ScrubStep): Promise<Result<ScrubStatus>> {
    // What a part has lost would look like damage (H6).
    const { stopped, incomplete } = this.#standing.current;
    if ((stopped ?? incomplete) !== undefined) return { ok: false, refusal: stopped ?? reconciling };
    const { last, running } = this.#stored;
    if (!this.#mayStep(message.begin)) return ok(this.status);
    const isNew = running === null || message.begin === "always";
    const checked = await this.#check(isNew ? null : running.cursor, message);
    if (!checked.ok) return checked;
    const now = this.#clock.now();
    const pass = isNew ? newPass(1 + ((running?.pass ?? last)?.number ?? 0), now) : running.pass;
    const stored = storedAfter(pass, last, checked.value, now);
    const written = await this.#commits.submit("scrub", () =>
      writeMeta(this.#sql, "scrub", JSON.stringify(stored)),
    );
    return written.ok ? ok(this.status) : written;
  }

  #mayStep(begin: ScrubBegin): boolean {
    return begin !== "when_due" || this.#isDue;
  }

  get #stored(): StoredScrub {
    const value = readMeta(this.#sql, "scrub");
    return typeof value === "string" ? (JSON.parse(value) as StoredScrub) : NEVER;
  }
}

const findingsOf = (pass: ScrubPass | null): number =>
  Object.values(pass?.counts ?? {}).reduce((sum, count) => sum + count, 0);

const { refusal: reconciling } = refused(
  "UNAVAILABLE",
  "the shard is being reconciled after a loss; scrub it when that is finished",
  { reason: "HISTORY_LOST", retryAfterMs: 60_000 },
);

const newPass = (number: number, startedAtMs: number): ScrubPass => ({
  number,
  startedAtMs,
  endedAtMs: null,
  table: null,
  rows: 0,
  counts: {},
  findings: [],
  clearedHolds: 0,
  unchecked: 0,
});

/** Adds what a step has checked. A pass that has ended replaces the last one. */
function storedAfter(
  before: ScrubPass,
  last: ScrubPass | null,
  { next, rows, findings, clearedHolds, unchecked }: ScrubProgress,
  nowMs: number,
): StoredScrub {
  const counts = { ...before.counts };
  for (const { kind } of findings) counts[kind] = (counts[kind] ?? 0) + 1;
  const pass: ScrubPass = {
    ...before,
    table: next?.table ?? null,
    endedAtMs: next === null ? nowMs : null,
    rows: before.rows + rows,
    counts,
    findings: [...before.findings, ...findings.map((each) => ({ ...each, foundAtMs: nowMs }))].slice(
      0,
      MAX_FINDINGS,
    ),
    clearedHolds: before.clearedHolds + clearedHolds,
    unchecked: before.unchecked + unchecked,
  };
  return next === null ? { running: null, last: pass } : { running: { pass, cursor: next }, last };
}

import { ask } from "../../../kernel/ask.ts";
import { fanOut } from "../../../kernel/fan-out.ts";
import type { HistoryPoint, MaintainAnswer } from "../../../kernel/messages.ts";
import type { RemovalEnd } from "../../removal/messages.ts";
import type { ScrubWork } from "../../scrub/messages.ts";
import type { Result } from "../../../kernel/refusal.ts";
import type { SeenContradictions } from "../../status/messages.ts";
import type { ReportedStatus } from "../../status/status.ts";
import { CALL_TIMEOUT_MS, hasRoom, type CronRun } from "../../../cron/cron-run.ts";
import { causeOf } from "../../../d1/database.ts";
import type { DirectorySighting, DirectoryWatch } from "../../loss/edge/directory-watch.ts";
import { isLostBy } from "../../loss/edge/lost-part.ts";
import { LedgerPull, type PullResult, type PullTarget } from "./pull.ts";

/** A cell to visit. If it is not known what D1 has (D1 is down), its ledger is woken but not pulled. */
export interface VisitTarget extends Omit<PullTarget, "known"> {
  known: PullTarget["known"] | null;
  /** Whether the directory has the cell as removed (X5). */
  isRemoved: boolean;
}

export interface Visit extends PullResult {
  cell: string;
  /** As in the target. */
  isRemoved: boolean;
  /** Null: the cell is not removed, or the ledger has not said. */
  removed: RemovalEnd | null;
  /** Decisions that some shard has not applied yet. Null: the ledger has not said. */
  unapplied: number | null;
  /** Granted leases that are stale. Null: the ledger has not said. */
  staleLeases: number | null;
  /** The audit entries that D1 may not have yet. Null: the ledger has not said. */
  auditEntries: number | null;
  /** Null: the ledger has not said. */
  scrub: ScrubWork | null;
  /** Whether the ledger has lost changes. Null: it has not said. */
  isLost: boolean | null;
  /** What the cell said of itself last. Null: nothing, or it is being removed. Undefined: not known. */
  reported: ReportedStatus | null | undefined;
  /** Null: there was none, or the ledger has not said. */
  contradictions: SeenContradictions | null;
}

/** The visits of one run, and whether the directory has all points that the ledgers have seen of it. */
export interface Visits {
  visits: Visit[];
  compared: Result<null>;
}

/**
 * Pulls the ledgers of all cells, and wakes them. The cells take turns: each gets one page, then each that
 * has more gets another one, until the run has no room. So a cell that is far behind delays no other cell.
 *
 * Every ledger is woken, even if its pull failed or its turn did not come. It may have lost its alarm (M3).
 */
export async function visitLedgers(
  run: CronRun,
  targets: readonly VisitTarget[],
  directory: DirectoryWatch,
): Promise<Visits> {
  const pulls = targets.map((target) => ({ target, pull: pullOf(run, target) }));
  const queue = pulls.flatMap(({ pull }) => pull ?? []);
  const takeTurns = async (): Promise<void> => {
    for (let pull = queue.shift(); pull !== undefined; pull = queue.shift()) {
      if (!hasRoom(run)) return;
      if (await pull.next()) queue.push(pull);
    }
  };
  await Promise.all(Array.from({ length: Math.min(run.limits.fanOut, queue.length) }, takeTurns));
  const pulled = pulls.map(({ target, pull }) => ({ target, result: pull?.result ?? NOT_PULLED }));
  const compared = await directory.compare(
    pulled.flatMap(({ target, result }) => sightingOf(target.cell, result.directory)),
  );
  const visits = await fanOut(pulled, run.limits.fanOut, ({ target, result }) =>
    wake(run, target, result, directory),
  );
  // A ledger that was not pulled has told only now what it has seen of the directory.
  const comparedLater = await directory.compare(
    visits.flatMap((visit) => sightingOf(visit.cell, visit.directory)),
  );
  return { visits, compared: compared.ok ? comparedLater : compared };
}

const sightingOf = (cell: string, point: HistoryPoint | null): DirectorySighting[] =>
  point === null ? [] : [{ noticedBy: `the ledger of cell ${cell}`, point }];

const pullOf = (run: CronRun, target: VisitTarget): LedgerPull | undefined =>
  target.known === null ? undefined : new LedgerPull(run, { ...target, known: target.known });

const NOT_PULLED: PullResult = {
  pages: 0,
  rows: 0,
  completeAtMs: null,
  directory: null,
  error: "the projection in D1 cannot be reached",
};

/** How long after its last page a run still wakes ledgers. Then the next run is due. */
const WAKE_MS = 10_000;

async function wake(
  run: CronRun,
  { cell, locationHint, isRemoved }: VisitTarget,
  pulled: PullResult,
  watch: DirectoryWatch,
): Promise<Visit> {
  if (run.runtime.clock.now() > run.deadlineMs + WAKE_MS)
    return {
      ...pulled,
      cell,
      isRemoved,
      removed: null,
      unapplied: null,
      staleLeases: null,
      auditEntries: null,
      scrub: null,
      isLost: null,
      reported: undefined,
      contradictions: null,
      error: pulled.error ?? "the run had no time left to wake this ledger",
    };
  const woken = await ask(run.runtime.clock, CALL_TIMEOUT_MS, async () =>
    run.objects.ledger(cell, locationHint).maintain({
      ...run.envelope,
      ...watch.newsFor(pulled.directory),
      ...(isRemoved ? { isRemoved } : {}),
    }),
  );
  const error = pulled.error ?? (woken.kind === "ok" ? null : causeOf(woken));
  if (error !== null) run.runtime.log("cell_failed", { cell, error });
  const { directory, auditEntries, scrub, removed, unapplied, staleLeases } =
    woken.kind === "ok" ? woken.value : NOT_SAID;
  const reported = woken.kind === "ok" ? reportOf(woken.value) : undefined;
  const contradictions = woken.kind === "ok" ? woken.value.contradictions : null;
  return {
    ...pulled,
    cell,
    isRemoved,
    removed,
    unapplied,
    staleLeases,
    directory,
    auditEntries,
    scrub,
    isLost: isLostBy(woken),
    reported,
    contradictions,
    error,
  };
}

const NOT_SAID = {
  directory: null,
  auditEntries: null,
  scrub: null,
  removed: null,
  unapplied: null,
  staleLeases: null,
} as const;

/** A cell that is being removed has no one left to report. */
const reportOf = ({ state, reported }: MaintainAnswer): ReportedStatus | null =>
  state === "REMOVING" || state === "REMOVED" ? null : reported;

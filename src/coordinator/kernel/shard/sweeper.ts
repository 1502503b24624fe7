import type { Standing } from "../standing.ts";
import type { HoldPosition } from "../messages.ts";
import type { Limits } from "../../../common/limits.ts";
import type { HookLists } from "../half.ts";
import type { Ports } from "../ports.ts";
import { AlarmSchedule } from "../alarm-schedule.ts";
import { FIRST_HOLD } from "./held-names.ts";
import type { ShardAlarm, ShardHooks } from "./hooks.ts";
import type { Inquirer } from "./inquirer.ts";
import type { PlacementGuard } from "../placement-guard.ts";
import type { HoldRow } from "./rows.ts";
import type { ShardLog } from "./shard-log.ts";
import type { Slot } from "../slot.ts";
import type { WideHolds } from "./wide-holds.ts";

/** The number of holds that a sweep looks at in one turn. */
const PAGE_HOLDS = 500;

/** The number of pages that one alarm reads. It stops earlier if it has asked about one page of holds. */
const PAGES_PER_ALARM = 10;

/** One pass over all holds. It takes several alarms if there are many holds. */
interface Pass {
  /** When the pass began. All holds of a pass are judged by this time. */
  atMs: number;
  /** When the pass before it began. Inquiries that were due by then were made. */
  previousMs: number;
  behind: HoldPosition;
  /** The earliest time at which a hold that the pass has read is due again. */
  nextMs: number;
}

interface Needs {
  readonly ports: Ports;
  readonly limits: Limits;
  readonly log: Pick<ShardLog, "held">;
  readonly inquirer: Inquirer;
  readonly wide: Slot<WideHolds>;
  readonly hooks: Pick<HookLists<ShardHooks>, "alarm">;
  readonly standing: Slot<Standing>;
  readonly placementGuard: Pick<PlacementGuard, "placement">;
}

/**
 * Inquires about holds that are older than `sweepAfterMs`, so that no hold stays after its lease is over just
 * because no begin meets it (B8). A hold of a granted lease may stay for days: the older it is, the longer
 * the pause between two inquiries about it. When a hold is due follows from its age alone, so the sweeper
 * remembers nothing about single holds. A new instance inquires once more about each.
 *
 * The same alarm does the work of capabilities that is due. A shard without a placement serves no names, so
 * it inquires about no holds.
 */
export class Sweeper {
  readonly #part: Needs;
  readonly #alarm: AlarmSchedule;
  #pass: Pass | undefined;
  #lastPassMs = -Infinity;

  constructor(part: Needs) {
    this.#part = part;
    this.#alarm = new AlarmSchedule(part.ports.alarm, part.ports.clock);
  }

  /**
   * Runs before an instance answers its first message: the previous instance may have left holds, and the
   * platform may have lost their alarm (M3).
   */
  async start(): Promise<void> {
    await this.#alarm.load();
    this.arm();
  }

  /**
   * Sets the alarm for the next sweep if there are holds (M3), or if a capability has work that is due.
   * Called at the start, when holds are made, and by the cron. No alarm waits for work that is due in months.
   * A shard that is lost does no work, so it needs none until its loss is accepted.
   */
  arm(): void {
    if (this.#part.standing.current.stopped !== undefined) return;
    const now = this.#part.ports.clock.now();
    if (this.isUrgent(now)) this.#alarm.setBy(now + this.#part.limits.sweepAfterMs / 4);
    if (this.#hasHolds || this.#isWorkDue(now)) this.#alarm.setBy(now + this.#part.limits.sweepAfterMs);
  }

  get #hasHolds(): boolean {
    return this.#isServing && (this.#part.wide.current.size > 0 || this.#part.log.held.size > 0);
  }

  /** Whether a capability has work to do. */
  #isWorkDue(nowMs: number): boolean {
    return this.#isWideDue(nowMs) || this.#part.hooks.alarm.some((alarm) => isDue(alarm, nowMs));
  }

  /** Whether a capability has work that does not wait for the next sweep. */
  isUrgent(nowMs: number): boolean {
    const { alarm: alarms } = this.#part.hooks;
    return this.#isWideDue(nowMs) || alarms.some((alarm) => alarm.isUrgent && isDue(alarm, nowMs));
  }

  #isWideDue(nowMs: number): boolean {
    return isDue(this.#part.wide.current.alarm, nowMs);
  }

  get #isServing(): boolean {
    return this.#part.placementGuard.placement !== undefined;
  }

  async run(): Promise<void> {
    this.#alarm.markRung();
    if (this.#part.standing.current.stopped !== undefined) return;
    let nextMs = -Infinity;
    try {
      await this.#part.wide.current.alarm.run();
      if (this.#isServing) nextMs = await this.#sweep();
      for (const alarm of this.#part.hooks.alarm) await alarm.run();
    } finally {
      const now = this.#part.ports.clock.now();
      const soonest = now + this.#part.limits.sweepAfterMs / 4;
      const latest = now + this.#part.limits.maxBackoffMs;
      if (this.#hasHolds) this.#alarm.setBy(Math.max(soonest, Math.min(nextMs, latest)));
      if (this.#isWorkDue(now)) this.#alarm.setBy(soonest);
    }
  }

  /** Reads the next pages of holds. Returns when the next sweep is due; that is at once if pages are left. */
  async #sweep(): Promise<number> {
    const pageHolds = Math.min(PAGE_HOLDS, this.#part.limits.scanRows);
    const isNew = this.#pass === undefined;
    const pass = (this.#pass ??= this.#newPass());
    if (isNew) await this.#askWide(pass);
    let asked = 0;
    for (let page = 0; page < PAGES_PER_ALARM && asked < pageHolds; page += 1) {
      const { held } = this.#part.log;
      const { entries, next } = held.after(pass.behind, pageHolds);
      const due = this.#dueIn(pass, entries).flatMap((entry) => held.holdsOf(entry));
      const isLast = next === null;
      if (isLast) this.#pass = undefined;
      else pass.behind = next;
      asked += due.length;
      // Without an inquiry, other work still gets its turn between two pages.
      await (due.length > 0 ? this.#ask(due) : this.#part.ports.clock.turn());
      if (isLast) return pass.nextMs;
    }
    return -Infinity;
  }

  /** They are few, so a pass asks about all that are due at once. */
  async #askWide(pass: Pass): Promise<void> {
    const due = this.#dueIn(pass, this.#part.wide.current.undecided());
    if (due.length > 0) await this.#part.inquirer.inquire(due);
  }

  async #ask(due: readonly HoldRow[]): Promise<void> {
    const verdicts = await this.#part.inquirer.inquire(due);
    await this.#part.inquirer.tellGranted(due, verdicts);
  }

  #newPass(): Pass {
    const atMs = this.#part.ports.clock.now();
    // After the clock was set back, it is not known what was asked, so everything is due again.
    const previousMs = this.#lastPassMs <= atMs ? this.#lastPassMs : -Infinity;
    this.#lastPassMs = atMs;
    return { atMs, previousMs, behind: FIRST_HOLD, nextMs: Infinity };
  }

  #dueIn<Hold extends { held_at_ms: number }>(pass: Pass, holds: readonly Hold[]): Hold[] {
    return holds.filter(({ held_at_ms: heldAtMs }) => {
      // A hold from the future has no age that could be waited for: the clock was set back.
      if (heldAtMs > pass.atMs) return true;
      pass.nextMs = Math.min(pass.nextMs, heldAtMs + this.#nextDueAge(pass.atMs - heldAtMs));
      return this.#nextDueAge(pass.previousMs - heldAtMs) <= pass.atMs - heldAtMs;
    });
  }

  /**
   * Returns the first age above `ageMs` at which a hold is due. The first one is `sweepAfterMs`. The pause
   * after each is half the age, but at least `sweepAfterMs` and at most `maxBackoffMs`.
   */
  #nextDueAge(ageMs: number): number {
    const { sweepAfterMs } = this.#part.limits;
    const longest = Math.max(sweepAfterMs, this.#part.limits.maxBackoffMs);
    let due = sweepAfterMs;
    while (due <= ageMs) {
      const pauseMs = Math.max(due / 2, sweepAfterMs);
      if (pauseMs >= longest) return due + longest * (Math.floor((ageMs - due) / longest) + 1);
      due += pauseMs;
    }
    return due;
  }
}

const isDue = (alarm: ShardAlarm, nowMs: number): boolean => alarm.dueMs(nowMs) <= nowMs;

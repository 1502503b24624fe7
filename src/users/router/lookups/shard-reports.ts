import { callHook, type RouterHooks } from "../hooks.ts";
import type { Entry } from "./entries.ts";
import { answerOf, type ReportPage, type Source } from "./source.ts";

/** What one shard has reported, without gaps: the keys that were put on hold in (start, through]. */
interface Coverage {
  /** Undefined before the first report, and after a gap. */
  start: number | undefined;
  through: number;
  /** Everything up to `through` was known at a moment not before this one (Q4). */
  freshMs: number;
  /** Entries from before this moment prove nothing, because the shard's positions went back since. */
  trustedSinceMs: number;
  /** By key hash, the position at which the key was held last. In order of the positions. */
  heldAt: Map<string, number>;
  /** For pruning: by when the coverage had come how far. */
  milestones: { freshMs: number; through: number }[];
  /** The largest position that any answer of this shard had. */
  seenPosition: number;
  /** Permissions to ask: one more each second, up to a few. */
  permits: number;
  permitsAtMs: number;
  poll: { work: Promise<void>; startedMs: number } | undefined;
  polledAtMs: number;
}

export interface ShardReportsOptions {
  source: Source;
  now: () => number;
  /** The longest life of an entry (W), in milliseconds. */
  reportedMaxAgeMs: number;
  /** The age up to which a report counts (B), in milliseconds. */
  boundMs: number;
  maxBytes: number;
  /** After this time, a poll is taken for lost, and another one may start. */
  pollTimeoutMs: number;
  hooks: RouterHooks;
}

const POLL_EVERY_MS = 1_000;
/** After a pause, a router catches up with several pages in a row. On average, it asks once a second. */
const MAX_PERMITS = 8;
/** A hash of 16 characters, its position and its place in the map. */
const HASH_BYTES = 112;
/** More shards than any deployment has. */
const MAX_SHARDS = 1_024;
const MILESTONES = 16;

/**
 * Follows the reports of all shards. Nothing runs by itself: a lookup that needs a report polls it, at most
 * once per second and shard on average, and lookups that come meanwhile share the poll.
 */
export class ShardReports {
  readonly #options: ShardReportsOptions;
  readonly #shards = new Map<number, Coverage>();
  #hashes = 0;

  constructor(options: ShardReportsOptions) {
    this.#options = options;
  }

  get bytes(): number {
    return this.#hashes * HASH_BYTES;
  }

  /** Whether the reports prove that the entry was true at a moment no longer ago than the bound (Q5). */
  proves(entry: Entry, nowMs: number): boolean {
    const coverage = this.#shards.get(entry.shard);
    return (
      coverage !== undefined &&
      nowMs - coverage.freshMs <= this.#options.boundMs &&
      this.#covers(coverage, entry) &&
      entry.position <= coverage.through
    );
  }

  /** Whether a newer report could prove the entry. */
  mayProve(entry: Entry, nowMs: number): boolean {
    const coverage = this.#shards.get(entry.shard);
    return (
      coverage !== undefined &&
      nowMs - coverage.freshMs <= this.#options.reportedMaxAgeMs &&
      this.#covers(coverage, entry)
    );
  }

  #covers(coverage: Coverage, entry: Entry): boolean {
    return (
      coverage.start !== undefined &&
      coverage.start <= entry.position &&
      entry.sinceMs >= coverage.trustedSinceMs &&
      (coverage.heldAt.get(entry.key) ?? -1) <= entry.position
    );
  }

  /** Notes the position of an answer, to notice a shard whose positions go back. */
  saw(shard: number, position: number): void {
    const coverage = this.#coverage(shard);
    if (coverage !== undefined) coverage.seenPosition = Math.max(coverage.seenPosition, position);
  }

  /** Whether it is time to poll the shard, so that its report does not get too old to be used. */
  isDue(shard: number, nowMs: number): boolean {
    const coverage = this.#coverage(shard);
    if (coverage === undefined || nowMs - coverage.freshMs <= this.#options.boundMs / 2) return false;
    return !this.#isPolling(coverage, nowMs) && this.#mayPoll(coverage, nowMs);
  }

  /** Joins the poll of the shard, or starts one if it may. Returns undefined if there is none to wait for. */
  poll(shard: number): Promise<void> | undefined {
    const coverage = this.#coverage(shard);
    if (coverage === undefined) return undefined;
    const nowMs = this.#options.now();
    if (this.#isPolling(coverage, nowMs)) return coverage.poll?.work;
    if (!this.#mayPoll(coverage, nowMs)) return undefined;
    coverage.polledAtMs = nowMs;
    const poll = { work: Promise.resolve(), startedMs: nowMs };
    coverage.poll = poll;
    poll.work = this.#read(shard, coverage, () => coverage.poll === poll).finally(() => {
      if (coverage.poll === poll) coverage.poll = undefined;
    });
    return poll.work;
  }

  /** Drops everything. Running polls have no effect any more. */
  clear(): void {
    this.#shards.clear();
    this.#hashes = 0;
  }

  #coverage(shard: number): Coverage | undefined {
    const known = this.#shards.get(shard);
    if (known !== undefined || this.#shards.size >= MAX_SHARDS) return known;
    const coverage: Coverage = {
      start: undefined,
      through: 0,
      freshMs: -Infinity,
      trustedSinceMs: -Infinity,
      heldAt: new Map(),
      milestones: [],
      seenPosition: 0,
      permits: 1,
      permitsAtMs: this.#options.now(),
      poll: undefined,
      polledAtMs: -Infinity,
    };
    this.#shards.set(shard, coverage);
    return coverage;
  }

  /** The promise of a poll never settles if the request that started it was cancelled. */
  #isPolling({ poll }: Coverage, nowMs: number): boolean {
    return poll !== undefined && nowMs - poll.startedMs < this.#options.pollTimeoutMs;
  }

  #mayPoll(coverage: Coverage, nowMs: number): boolean {
    return nowMs - coverage.polledAtMs >= POLL_EVERY_MS && this.#permits(coverage, nowMs) >= 1;
  }

  #permits(coverage: Coverage, nowMs: number): number {
    const gained = Math.max(0, nowMs - coverage.permitsAtMs) / POLL_EVERY_MS;
    coverage.permits = Math.min(MAX_PERMITS, coverage.permits + gained);
    coverage.permitsAtMs = nowMs;
    return coverage.permits;
  }

  /** Reads pages up to the newest position, or as far as the permits go. */
  async #read(shard: number, coverage: Coverage, isCurrent: () => boolean): Promise<void> {
    const { source, now, hooks } = this.#options;
    while (this.#permits(coverage, now()) >= 1) {
      coverage.permits -= 1;
      const sentMs = now();
      if (sentMs - coverage.freshMs > this.#options.reportedMaxAgeMs) this.#restart(coverage);
      const after = coverage.start === undefined ? undefined : coverage.through;
      const page = await answerOf(source.report(shard, after));
      // The answer of a poll that was taken for lost must not be joined to a later one.
      if (!isCurrent() || this.#shards.get(shard) !== coverage) return;
      if (page.kind === "failed") {
        const { detail, status } = page;
        const event = { operation: "report", detail, ...(status === undefined ? {} : { status }) } as const;
        return callHook(hooks.onFailure, event);
      }
      const fault = page.kind === "pruned" ? undefined : faultOf(page, shard, after);
      if (page.kind === "pruned" || fault !== undefined) {
        this.#restart(coverage);
        if (fault !== undefined) {
          callHook(hooks.onFailure, { operation: "report", detail: fault });
          return;
        }
        continue;
      }
      const ageMs = Number.isFinite(coverage.freshMs) ? sentMs - coverage.freshMs : 0;
      this.#apply(coverage, page, sentMs);
      const keys = page.held.reduce((sum, [, each]) => sum + each.length, 0);
      callHook(hooks.onReport, { shard, ageMs, keys });
      // A full page tells what happened up to its end, but not that nothing happened since.
      if (!page.hasMore) return;
    }
  }

  #apply(coverage: Coverage, page: ReportPage, sentMs: number): void {
    if (coverage.start === undefined) {
      coverage.start = page.after;
      // The router has seen larger positions, so the shard has lost some. Older entries may have been read in
      // the history that was lost, and the reports of the new one don't tell what became of them.
      if (page.through < coverage.seenPosition) coverage.trustedSinceMs = sentMs;
      coverage.seenPosition = 0;
    }
    for (const [position, keys] of page.held) {
      for (const key of keys) {
        // Deleted first, so that the order of the map is that of the positions.
        if (!coverage.heldAt.delete(key)) this.#hashes += 1;
        coverage.heldAt.set(key, position);
      }
    }
    coverage.through = page.through;
    coverage.seenPosition = Math.max(coverage.seenPosition, page.through);
    if (!page.hasMore) {
      coverage.freshMs = sentMs - page.ageMs;
      this.#pruneByAge(coverage);
    }
    this.#pruneBySize();
  }

  #restart(coverage: Coverage): void {
    coverage.seenPosition = Math.max(coverage.seenPosition, coverage.through);
    this.#hashes -= coverage.heldAt.size;
    coverage.heldAt.clear();
    coverage.milestones = [];
    coverage.start = undefined;
    coverage.freshMs = -Infinity;
  }

  /** Entries live for W at most, so nobody asks about positions that are older than that. */
  #pruneByAge(coverage: Coverage): void {
    const { freshMs, through, milestones } = coverage;
    const { reportedMaxAgeMs } = this.#options;
    const last = milestones.at(-1);
    if (last === undefined || freshMs - last.freshMs >= reportedMaxAgeMs / MILESTONES)
      milestones.push({ freshMs, through });
    for (;;) {
      const [oldest] = milestones;
      if (oldest === undefined || freshMs - oldest.freshMs <= reportedMaxAgeMs) return;
      milestones.shift();
      this.#forgetThrough(coverage, oldest.through);
    }
  }

  /** Moves the start of the largest coverage forward, so entries from before the start are asked again. */
  #pruneBySize(): void {
    while (this.bytes > this.#options.maxBytes) {
      const coverages = [...this.#shards.values()];
      const largest = coverages.reduce((a, b) => (b.heldAt.size > a.heldAt.size ? b : a));
      const some = Math.max(1, Math.floor(largest.heldAt.size / 8));
      const [, through = largest.through] = [...largest.heldAt][some - 1] ?? [];
      this.#forgetThrough(largest, through);
    }
  }

  #forgetThrough(coverage: Coverage, position: number): void {
    for (const [key, heldAt] of coverage.heldAt) {
      if (heldAt > position) break;
      coverage.heldAt.delete(key);
      this.#hashes -= 1;
    }
    if (coverage.start !== undefined) coverage.start = Math.max(coverage.start, position);
  }
}

/** Why a page does not continue where the report ended, or undefined if it does. */
function faultOf(page: ReportPage, shard: number, after: number | undefined): string | undefined {
  if (page.shard !== shard) return `the report is about shard ${page.shard}, not ${shard}`;
  if (after !== undefined && page.after !== after)
    return `the report begins after ${page.after}, not ${after}`;
  if (page.through < page.after) return "the report ends before it begins";
  if (page.hasMore && page.through === page.after) return "the report has an empty page that is full";
  let last = page.after;
  for (const [position] of page.held) {
    if (position <= last || position > page.through) return "the report's positions are not in order";
    last = position;
  }
  return undefined;
}

import {
  isLeaseholdError,
  ReportPrunedError,
  type Bucket,
  type Client,
  type RouteAnswer,
} from "../../users/client/index.ts";
import { escapeControls } from "../../common/text/escape.ts";
import type { Watched, WatchEvent } from "./watch-event.ts";

interface Name {
  bucket: Bucket;
  /** Undefined: not asked yet. */
  last: RouteAnswer | undefined;
  isDirty: boolean;
}

/**
 * The owners of names. The reports of their shards say which names leases have held since the last look, so
 * only those are asked for again.
 */
export class NameWatch implements Watched {
  readonly #client: Client;
  readonly #cell: string | undefined;
  readonly #names: readonly Name[];
  /** The positions up to which reports were read. */
  readonly #positions: Map<number, number>;
  readonly #from: ReadonlyMap<number, number>;
  readonly #readsReports: boolean;
  #pending: WatchEvent[] = [];
  /** Names that no report after these positions has are not printed at the start. */
  #isResuming: boolean;

  constructor(
    client: Client,
    buckets: readonly Bucket[],
    from: ReadonlyMap<number, number>,
    options: { cell: string | undefined; readsReports: boolean },
  ) {
    this.#client = client;
    this.#cell = options.cell;
    this.#readsReports = options.readsReports;
    this.#names = buckets.map((bucket) => ({ bucket, last: undefined, isDirty: true }));
    this.#from = from;
    this.#positions = new Map(from);
    this.#isResuming = from.size > 0;
  }

  get place(): string | undefined {
    const pairs = [...this.#positions].map(([shard, position]) => `${shard}:${position}`);
    return pairs.join(",") || undefined;
  }

  async poll(): Promise<WatchEvent[]> {
    // The positions must not pass a change whose name has not been read since.
    const through = await this.#readReports();
    // What was found stays here if a later call of this look fails.
    this.#pending.push(...(await this.#ask()));
    for (const [shard, position] of through) if (!this.#hasDirty(shard)) this.#positions.set(shard, position);
    if (this.#isResuming) await this.#resume();
    return this.#pending.splice(0);
  }

  #hasDirty(shard: number): boolean {
    return this.#names.some(({ last, isDirty }) => isDirty && last?.shard === shard);
  }

  /** Marks the names that leases have held, and returns how far the reports were read. */
  async #readReports(): Promise<Map<number, number>> {
    const through = new Map<number, number>();
    if (!this.#readsReports) for (const name of this.#names) name.isDirty = true;
    if (this.#isResuming || !this.#readsReports) return through;
    for (const [shard, position] of this.#positions)
      through.set(shard, await this.#readShard(shard, position, (keys) => this.#markKeys(shard, keys)));
    return through;
  }

  #markKeys(shard: number, keys: ReadonlySet<string> | undefined): void {
    for (const name of this.#names)
      if (name.last?.shard === shard && (keys === undefined || keys.has(name.last.key))) name.isDirty = true;
  }

  /** Calls `mark` with the keys of each page, or with undefined if the shard has forgotten some. */
  async #readShard(
    shard: number,
    position: number,
    mark: (keys: ReadonlySet<string> | undefined) => void,
  ): Promise<number> {
    try {
      for (let after = position; ;) {
        const report = await this.#client.routing.report(shard, { after });
        mark(new Set(report.held.flatMap(({ keys }) => keys)));
        if (!report.hasMore) return report.through;
        after = report.through;
      }
    } catch (error) {
      if (!(error instanceof ReportPrunedError)) throw error;
      mark(undefined);
      return (await this.#client.routing.report(shard)).through;
    }
  }

  async #ask(): Promise<WatchEvent[]> {
    const dirty = this.#names.filter(({ isDirty, last }) => isDirty || last?.settled === false);
    if (dirty.length === 0) return [];
    const answers = await this.#client.routing.findMany(dirty.map(({ bucket }) => bucket));
    const events: WatchEvent[] = [];
    for (const [at, name] of dirty.entries()) {
      const answer = answers[at];
      // An answer that is not known is asked for again.
      if (answer === undefined || "error" in answer) continue;
      const before = name.last;
      name.last = answer;
      name.isDirty = false;
      const known = this.#positions.get(answer.shard);
      if (known === undefined) this.#positions.set(answer.shard, answer.position);
      // Other names of the shard were read at this position or earlier.
      else if (before === undefined && !this.#isResuming)
        this.#positions.set(answer.shard, Math.min(known, answer.position));
      if (!isSame(before, answer) && this.#isAbout(before, answer))
        events.push(eventOf(name, before, answer));
    }
    return events;
  }

  /** After the first answers of a resumed watch, keeps those whose names have been held meanwhile. */
  async #resume(): Promise<void> {
    const changed = new Set<string>();
    const through = new Map<number, number>();
    for (const [shard, position] of this.#from)
      through.set(
        shard,
        await this.#readShard(shard, position, (keys) => {
          for (const { last } of this.#names)
            if (last?.shard === shard && (keys === undefined || keys.has(last.key)))
              changed.add(`${shard} ${last.key}`);
        }),
      );
    for (const [shard, position] of through) {
      const read = this.#names.flatMap(({ last }) => (last?.shard === shard ? [last.position] : []));
      this.#positions.set(shard, Math.min(position, ...read));
    }
    this.#pending = this.#pending.filter(
      ({ document: { shard, key } }) =>
        !this.#from.has(Number(shard)) || changed.has(`${String(shard)} ${String(key)}`),
    );
    this.#isResuming = false;
  }

  #isAbout(before: RouteAnswer | undefined, after: RouteAnswer): boolean {
    return this.#cell === undefined || [before?.cell?.id, after.cell?.id].includes(this.#cell);
  }
}

const isSame = (one: RouteAnswer | undefined, other: RouteAnswer): boolean =>
  one?.cell?.id === other.cell?.id && one?.epoch === other.epoch && one?.settled === other.settled;

function eventOf({ bucket }: Name, before: RouteAnswer | undefined, answer: RouteAnswer): WatchEvent {
  const { cell, epoch, settled, shard, position, key } = answer;
  const owner =
    cell === undefined ? "no owner" : `cell ${cell.id}${epoch === undefined ? "" : `, epoch ${epoch}`}`;
  return {
    document: {
      event: "name",
      type: bucket.type,
      name: bucket.value,
      cell: cell?.id ?? null,
      epoch: epoch ?? null,
      settled,
      before: before === undefined ? null : { cell: before.cell?.id ?? null, epoch: before.epoch ?? null },
      shard,
      position,
      key,
    },
    text:
      `${bucket.type} ${escapeControls(bucket.value)}: ${owner}` +
      (settled ? "" : "; a lease holds it, so this may change"),
  };
}

/** Whether the deployment may answer again later. */
export const isOutage = (error: unknown): boolean =>
  isLeaseholdError(error) && ["UNAVAILABLE", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED"].includes(error.code);

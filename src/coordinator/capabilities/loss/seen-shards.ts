import type { Limits } from "../../../common/limits.ts";
import { fanOut } from "../../kernel/fan-out.ts";
import { isSamePoint, laterPoint, type Instances } from "../../kernel/instances.ts";
import type { ShardLinks } from "../../kernel/ledger/shard-links.ts";
import type { Sightings } from "../../kernel/ledger/sightings.ts";
import type { Applied, LedgerStore } from "../../kernel/ledger/store.ts";
import type {
  Envelope,
  Exchange,
  ExchangeAnswer,
  HistoryPoint,
  Remembered,
  SettleAnswer,
} from "../../kernel/messages.ts";
import type { ShardPoints } from "./messages.ts";
import { shardsOf } from "../../kernel/placement.ts";
import type { Ports, Sql } from "../../kernel/ports.ts";
import { refused, type Refusal } from "../../kernel/refusal.ts";
import type { History } from "./history.ts";
import type { SeenDirectory } from "./seen-directory.ts";

interface Needs {
  readonly limits: Pick<Limits, "fanOut">;
  readonly ports: Pick<Ports, "sql">;
  readonly store: Pick<LedgerStore, "applied">;
  readonly instances: Instances;
  readonly history: History;
  readonly links: Pick<ShardLinks, "placement" | "touch">;
  readonly directory: SeenDirectory;
}

/** What a ledger and the shards have seen of each other (H2 to H5). */
export class SeenShards implements Sightings {
  readonly #part: Needs;
  /** The newest point of each shard that this ledger has seen (H2). */
  readonly #points: Map<number, HistoryPoint>;
  /** The largest incarnation of each shard that has answered this instance. */
  readonly #incarnations = new Map<number, number>();
  /** The shards whose points have changed since `takeNews`. */
  readonly #news = new Set<number>();
  /** The newest point of this ledger that each shard has answered, and that this ledger has (H5). */
  readonly #confirmed = new Map<number, HistoryPoint>();
  /** The comparison that is running. */
  #comparing: Promise<Refusal | undefined> | undefined;

  constructor(part: Needs) {
    this.#part = part;
    // Those that previous instances have stored.
    this.#points = new Map(storedPoints(part.ports.sql, part.store.applied));
    this.tellAll();
  }

  /** The newest points of all shards. */
  get points(): ReadonlyMap<number, HistoryPoint> {
    return this.#points;
  }

  of(shard: number): { seen?: HistoryPoint } {
    const seen = this.#points.get(shard);
    return seen === undefined ? {} : { seen };
  }

  own(shard: number, unchecked?: ExchangeAnswer): Pick<Exchange, "point" | "confirmed"> {
    const { point = null, before = null } = this.#part.instances;
    const known = this.#confirmed.get(shard) ?? before;
    return { point, confirmed: unchecked === undefined ? known : unchecked.seen };
  }

  /** If this ledger has the point, the next exchange tells the shard so (H5). */
  compare(
    shard: number,
    { seen, point }: Pick<ExchangeAnswer, "seen"> & Partial<ExchangeAnswer>,
  ): Refusal | undefined {
    const refusal = seen === null ? undefined : this.#part.history.admit(seen, `shard ${shard}`);
    if (refusal !== undefined) return refusal;
    if (seen !== null) this.#confirmed.set(shard, seen);
    if (point !== undefined)
      this.#incarnations.set(shard, Math.max(this.incarnationOf(shard), point?.incarnation ?? 0));
    return undefined;
  }

  see(shard: number, { point }: Pick<SettleAnswer, "point">, { seen }: Envelope): void {
    this.#see(shard, point, seen);
  }

  incarnationOf(shard: number): number {
    return this.#incarnations.get(shard) ?? 0;
  }

  /**
   * Compares what the shards have seen of this ledger with what it has, once for each instance: only an
   * instance that has just started can have gone back in time.
   */
  compareAll(): Promise<Refusal | undefined> {
    this.#comparing ??= this.#compareAll().finally(() => {
      this.#comparing = undefined;
    });
    return this.#comparing;
  }

  async #compareAll(): Promise<Refusal | undefined> {
    const { links, limits, history } = this.#part;
    const { placement } = links;
    const left = [...Array(shardsOf(placement)).keys()].filter((shard) => !this.#incarnations.has(shard));
    const answers = await fanOut(left, limits.fanOut, (shard) => links.touch(shard, placement));
    if (history.stopped !== undefined) return history.stopped;
    const silent = left.find((_, index) => answers[index]?.kind !== "ok");
    if (silent === undefined) return undefined;
    const detail = `shard ${silent} has not told what it knows of this cell; retry`;
    return refused("UNAVAILABLE", detail, { retryAfterMs: 1_000 }).refusal;
  }

  get isStored(): boolean {
    return this.#part.directory.isStored;
  }

  /** Decisions that are not told to the shards again are not the last trace of what they have done (H3). */
  stored(): Partial<Applied> {
    const shards: Applied["shards"] = Object.fromEntries(
      [...this.#points].map(([shard, point]) => [shard, [point.incarnation, point.position]]),
    );
    const directory = this.#part.directory.point;
    return {
      shards,
      ...(directory === undefined ? {} : { directory: [directory.incarnation, directory.position] }),
    };
  }

  remembered(): Remembered {
    return { directory: this.#part.directory.point ?? null };
  }

  /**
   * Takes over a newer point. The point of another incarnation replaces the known one only if the shard has
   * accepted a message that carried the known one. Otherwise, a shard that has gone back in time could make
   * this ledger forget what it knows (H5).
   */
  #see(shard: number, point: HistoryPoint | null, carried: HistoryPoint | undefined): void {
    if (point === null) return;
    const known = this.#points.get(shard);
    const isNewer =
      known === undefined ||
      (point.incarnation === known.incarnation
        ? point.position > known.position
        : point.incarnation > known.incarnation && isSamePoint(carried, known));
    if (!isNewer) return;
    this.#points.set(shard, point);
    this.#news.add(shard);
  }

  /** Takes over points that somebody else has seen. */
  learn(points: ShardPoints): void {
    for (const [shard, point] of Object.entries(points)) this.#see(Number(shard), point, undefined);
  }

  /** Returns the points that are new since the last call, for whoever gets the next answer. */
  takeNews(): ShardPoints {
    const points: ShardPoints = {};
    for (const shard of this.#news) {
      const point = this.#points.get(shard);
      if (point !== undefined) points[shard] = point;
    }
    this.#news.clear();
    return points;
  }

  /** The next call of `takeNews` returns all points. */
  tellAll(): void {
    for (const shard of this.#points.keys()) this.#news.add(shard);
  }
}

/** Returns the newest point of each shard that a ledger has stored, in its leases or with `applied`. */
function storedPoints(sql: Sql, { shards = {}, through = 0 }: Partial<Applied>): Map<number, HistoryPoint> {
  const points = new Map(
    Object.entries(shards).map(([shard, [incarnation, position]]) => [
      Number(shard),
      { incarnation, position },
    ]),
  );
  // SQLite takes the other columns from the row with the maximum. The incarnation is unknown (0) in a lease
  // that was rebuilt from holds which have moved. Such a row must not hide an older point.
  const rows = sql.all<{ shard: string; position: number; incarnation: number }>(
    `SELECT execution.key AS shard, max(execution.value ->> 0) AS position,
            execution.value ->> 1 AS incarnation
       FROM lease, json_each(lease.epochs) AS execution
      WHERE created_position > ? AND execution.value ->> 1 > 0 GROUP BY execution.key`,
    through,
  );
  for (const { shard, position, incarnation } of rows)
    points.set(Number(shard), laterPoint(points.get(Number(shard)), { incarnation, position }));
  return points;
}

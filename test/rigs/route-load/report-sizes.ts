/** Measures the reports that the real log of shards gives to routers. */
import { keyHash } from "../../../src/coordinator/kernel/key-hash.ts";
import type { Report } from "../../../src/coordinator/capabilities/reports/messages.ts";
import { migrate } from "../../support/migrate.ts";
import { shardOf } from "../../../src/coordinator/kernel/placement.ts";
import { reportAfter } from "../../../src/coordinator/capabilities/reports/shard.ts";
import { shardSchema } from "../../../src/coordinator/kernel/shard/schema.ts";
import { ShardLog } from "../../../src/coordinator/kernel/shard/shard-log.ts";
import { NodeSql } from "../../support/node-sql.ts";
import { bucketType } from "../../support/types.ts";

export interface ReportSizeOptions {
  shards: number;
  claimsPerSecond: number;
  seconds: number;
  /** The position at which the shards begin. Reports with longer numbers are larger. */
  firstPosition: number;
}

export interface ReportSizes {
  /** All pages of all shards over the whole time, for a router that reads each page when it is full. */
  wholeBytes: number;
  /** The same for a router that asks every second. */
  polledBytes: number;
  /** The largest answer to a question that comes each second. */
  tailBytes: number;
  keys: number;
}

const ROUTES = bucketType("ROUTES");

/** Each claim is a lease of its own, so its prepare and its decision are one transaction each. */
export function measureReports(options: ReportSizeOptions): ReportSizes {
  const { shards, claimsPerSecond, seconds, firstPosition } = options;
  const logs = Array.from({ length: shards }, () => newLog(firstPosition));
  const everySecond = logs.map(({ log }, shard) => new Reader(shard, log));
  const fullPages = logs.map(({ log }, shard) => new Reader(shard, log));
  for (let second = 0, claim = 0; second < seconds; second += 1) {
    for (const last = claim + claimsPerSecond; claim < last; claim += 1) {
      const key = { type: ROUTES, canonical: `group-${claim % 997}/project-${claim}` };
      hold(logs[shardOf(key.type, key.canonical, shards)], keyHash(key));
    }
    for (const reader of everySecond) reader.read();
    for (const reader of fullPages) if (second === seconds - 1 || reader.isPageFull) reader.read();
  }
  const sum = (readers: readonly Reader[], figure: "bytes" | "keys"): number =>
    readers.reduce((total, reader) => total + reader[figure], 0);
  return {
    wholeBytes: sum(fullPages, "bytes"),
    polledBytes: sum(everySecond, "bytes"),
    tailBytes: Math.max(...everySecond.map(({ mostBytes }) => mostBytes)),
    keys: sum(everySecond, "keys"),
  };
}

/** A router that follows one shard. */
class Reader {
  readonly #shard: number;
  readonly #log: ShardLog;
  #through: number;
  bytes = 0;
  mostBytes = 0;
  keys = 0;

  constructor(shard: number, log: ShardLog) {
    this.#shard = shard;
    this.#log = log;
    this.#through = log.position;
  }

  get isPageFull(): boolean {
    return this.#next().hasMore;
  }

  read(): void {
    for (let hasMore = true; hasMore;) {
      const page = this.#next();
      const bytes = JSON.stringify(bodyOf(this.#shard, page)).length;
      this.bytes += bytes;
      this.mostBytes = Math.max(this.mostBytes, bytes);
      this.keys += page.held.reduce((sum, { keys }) => sum + keys.length, 0);
      this.#through = page.through;
      ({ hasMore } = page);
    }
  }

  #next(): Report {
    const page = reportAfter(this.#log, this.#through);
    if (page === undefined) throw new Error("the log is too short for these pauses");
    return page;
  }
}

interface Stored {
  sql: NodeSql;
  log: ShardLog;
}

function newLog(firstPosition: number): Stored {
  const sql = new NodeSql();
  migrate(sql, shardSchema);
  const log = new ShardLog(sql, { now: () => 0 });
  sql.transaction(["exchange"], () => {
    log.jumpTo(firstPosition);
    log.append();
  });
  return { sql, log };
}

function hold(stored: Stored | undefined, hash: string): void {
  if (stored === undefined) throw new Error("the shard of a key does not exist");
  const { sql, log } = stored;
  sql.transaction(["exchange"], () => {
    log.nextEpoch();
    log.noteHeld(hash);
    log.append();
  });
  sql.transaction(["exchange"], () => {
    log.nextEpoch();
    log.append();
  });
}

/** The body of `GET /v1/reports/{shard}`. */
const bodyOf = (shard: number, { after, through, held, hasMore }: Report) => ({
  shard,
  after,
  through,
  held: held.map(({ position, keys }) => [position - after, keys]),
  has_more: hasMore,
  age_ms: 0,
});

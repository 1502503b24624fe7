import { keyHash } from "../../../src/coordinator/kernel/key-hash.ts";
import { shardOf } from "../../../src/coordinator/kernel/placement.ts";
import type { Name } from "../../../src/users/router/index.ts";
import type {
  CellList,
  ReportPage,
  Source,
  SourceAnswer,
  SourceFailure,
} from "../../../src/users/router/lookups/source.ts";
import { bucketType } from "../../support/types.ts";
import type { VirtualTime } from "./virtual-time.ts";

/** How many transactions and keys a page of a report has at most (Q3). */
const PAGE_TRANSACTIONS = 256;
const PAGE_KEYS = 400;
/** How long a lease holds a name. */
const HELD_MS = 50;
/** How long an answer takes. */
const ANSWER_MS = 20;

const ROUTES = bucketType("ROUTES");

interface Claim {
  name: Name;
  key: string;
  shard: number;
  epoch: number;
  isHeld: boolean;
}

interface ShardState {
  position: number;
  /** What was put on hold, oldest first. */
  log: { position: number; key: string }[];
}

/** Names with owners that change, and the shards that tell routers about them. It counts what it is asked. */
export class Truth implements Source {
  readonly claims: readonly Claim[];
  readonly asked = { names: 0, reports: 0 };
  readonly #time: VirtualTime;
  readonly #shards: ShardState[];
  readonly #byValue: Map<string, Claim>;

  constructor(time: VirtualTime, size: { names: number; shards: number }) {
    this.#time = time;
    this.#shards = Array.from({ length: size.shards }, () => ({ position: 1, log: [] }));
    this.claims = Array.from({ length: size.names }, (_, index): Claim => {
      const value = `group-${index % 1_009}/project-${index}`;
      const key = { type: ROUTES, canonical: value };
      return {
        name: { type: "ROUTES", value },
        key: keyHash(key),
        shard: shardOf(key.type, key.canonical, size.shards),
        epoch: 1,
        isHeld: false,
      };
    });
    this.#byValue = new Map(this.claims.map((claim) => [claim.name.value, claim]));
  }

  /** A lease gives a name to another cell. */
  change(claim: Claim): void {
    if (claim.isHeld) return;
    const shard = this.#shardAt(claim.shard);
    shard.position += 1;
    shard.log.push({ position: shard.position, key: claim.key });
    const epoch = shard.position;
    claim.isHeld = true;
    this.#time.after(HELD_MS, () => {
      shard.position += 1;
      claim.epoch = epoch;
      claim.isHeld = false;
    });
  }

  async find({ value }: Name): Promise<SourceAnswer> {
    this.asked.names += 1;
    const claim = this.#byValue.get(value);
    if (claim === undefined) return { kind: "failed", detail: "there is no such name" };
    const { key, shard, epoch, isHeld } = claim;
    const { position } = this.#shardAt(shard);
    const read = { key, shard, epoch, position, settled: !isHeld, ageMs: 0 };
    await this.#time.sleep(ANSWER_MS);
    const cell = String(1 + (epoch % 8));
    return {
      kind: "found",
      cell: { id: cell, address: `https://cell-${cell}.example.com` },
      ...read,
    };
  }

  findMany(names: readonly Name[]): Promise<readonly SourceAnswer[]> {
    return Promise.all(names.map((name) => this.find(name)));
  }

  async report(shard: number, after: number | undefined): Promise<ReportPage | SourceFailure> {
    this.asked.reports += 1;
    const { position, log } = this.#shardAt(shard);
    const from = after ?? position;
    // A shard's log has a row for each transaction: one that puts a name on hold, and one that ends the hold.
    const rows = Math.min(PAGE_TRANSACTIONS, PAGE_KEYS);
    const first = log.findLastIndex((row) => row.position <= from) + 1;
    const listed = log.slice(first, first + rows);
    const hasMore = listed.length === rows;
    await this.#time.sleep(ANSWER_MS);
    return {
      kind: "page",
      shard,
      after: from,
      through: hasMore ? (listed.at(-1)?.position ?? from) : position,
      held: listed.map((row) => [row.position, [row.key]]),
      hasMore,
      ageMs: 0,
    };
  }

  async cells(): Promise<CellList> {
    const cells = Array.from({ length: 8 }, (_, index) => String(index + 1));
    return {
      kind: "cells",
      cells: cells.map((id) => ({ id, address: `https://cell-${id}.example.com` })),
      ageMs: 0,
      copyAgeMs: 0,
    };
  }

  close(): void {}

  #shardAt(index: number): ShardState {
    const shard = this.#shards[index];
    if (shard === undefined) throw new Error(`there is no shard ${index}`);
    return shard;
  }
}

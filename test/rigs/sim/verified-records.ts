import type { Bucket, ForeignRecord, ClaimRecord as ApiRecord } from "../../../src/users/client/api-types.ts";
import { canonicalOf, numberOf } from "../../../src/users/cell/declared-types.ts";
import type {
  IdRange,
  RangeDigest,
  RecordPage,
  VerifiedRecords,
} from "../../../src/users/cell/verification/ports.ts";
import { fanOut } from "../../../src/coordinator/kernel/fan-out.ts";
import { DigestSum } from "../../../src/common/digest.ts";
import type { BucketKey, ClaimRecord, LookupFound } from "../../../src/coordinator/kernel/messages.ts";
import type {
  RangeDigest as ShardDigest,
  RecordPosition,
  SourceRange,
} from "../../../src/coordinator/capabilities/records/messages.ts";
import { shardOf } from "../../../src/coordinator/kernel/placement.ts";
import type { Answer } from "../../../src/coordinator/kernel/ports.ts";
import { refused, type Result } from "../../../src/coordinator/kernel/refusal.ts";
import { afterSource } from "../../../src/coordinator/capabilities/records/scan-store.ts";
import { sourceOrder } from "../../../src/common/source-order.ts";
import { readDigests, sumOf } from "../../../src/coordinator/capabilities/records/edge/digest-parts.ts";
import {
  isSplit,
  mergeRecords,
  type MergedPage,
} from "../../../src/coordinator/capabilities/records/edge/record-merge.ts";
import { toApiRecord } from "../../../src/coordinator/api/answers.ts";
import { shipped } from "../../support/types.ts";
import type { Api, SimulationContext } from "./api.ts";

/** More messages than the ranges of a simulated verification take. */
const DIGEST_CALLS = 200;

const TRIES = 3;
const PAUSE_MS = 50;

/** The coordinator did not answer, or refused. */
export class CoordinatorFailed extends Error {}

/**
 * The coordinator's records as a verification reads them: all shards merged as the Worker merges them. If a
 * part is missing, the call fails.
 */
export class SimulatedRecords implements VerifiedRecords {
  readonly #cell: string;
  readonly #api: Api;
  readonly #context: SimulationContext;

  constructor(cell: string, api: Api, context: SimulationContext) {
    this.#cell = cell;
    this.#api = api;
    this.#context = context;
  }

  async list({
    source,
    bucketTypes,
    after,
    upTo,
    pageSize,
  }: Parameters<VerifiedRecords["list"]>[0]): Promise<RecordPage> {
    const asOfMs = this.#nowMs();
    const range = { ...this.#selectionOf(source, bucketTypes), ...orders({ after, upTo }) };
    const records: ClaimRecord[] = [];
    for (let behind = afterSource(range.after); ;) {
      const page = await this.#page(range, behind, pageSize);
      records.push(...page.records);
      const { next } = page;
      // As the production ports do, reads on until all records of the last source id are there.
      if (next === undefined || (!isSplit(page) && records.length > 0))
        return { records: records.map(recordOf), asOfMs, nextPageToken: next === undefined ? "" : "more" };
      behind = next;
    }
  }

  #selectionOf(
    source: string,
    bucketTypes: readonly string[],
  ): { cell: string; sourceType: number; bucketTypes: number[] } {
    return {
      cell: this.#cell,
      sourceType: numberOf(shipped, "source", source),
      bucketTypes: bucketTypes.map((type) => numberOf(shipped, "bucket", type)),
    };
  }

  /** Small limits make it end a page where its messages end, and within a source id. */
  async #page(
    range: Omit<Parameters<Api["records"]>[1], "cursor" | "limit">,
    behind: RecordPosition,
    pageSize: number,
  ): Promise<MergedPage> {
    const { isolate, coordinator } = this.#context;
    const { limits } = coordinator;
    const { shards, placement } = isolate;
    const isSmall = limits.scanRows < 100;
    const merge = {
      shards,
      width: limits.fanOut,
      limit: pageSize,
      extra: isSmall ? 0 : limits.maxPageItems,
      // More than the messages that the scan of a shard's holds takes, so that each page gets further.
      calls: isSmall ? 40 * shards : 900,
      behind,
    };
    const merged = await mergeRecords(merge, async (shard, cursor, limit) =>
      resultOf(await this.#tried(() => this.#api.records(shard, { ...range, placement, cursor, limit }))),
    );
    if (!merged.ok) throw new CoordinatorFailed(merged.refusal.detail);
    for (const record of merged.value.records)
      if (record.status === "LEASE_CREATING") this.#context.judge.showed(record);
    return merged.value;
  }

  async digests({
    source,
    bucketTypes,
    ranges,
  }: Parameters<VerifiedRecords["digests"]>[0]): ReturnType<VerifiedRecords["digests"]> {
    const asOfMs = this.#nowMs();
    const { isolate, coordinator } = this.#context;
    const { shards, placement } = isolate;
    const query = { ...this.#selectionOf(source, bucketTypes), placement, ranges: ranges.map(orders) };
    const answers = await fanOut([...Array(shards).keys()], coordinator.limits.fanOut, (shard) =>
      readDigests(ranges.length, DIGEST_CALLS, async (cursor) =>
        resultOf(await this.#tried(() => this.#api.digests(shard, { ...query, cursor }))),
      ),
    );
    const parts = answers.map((answer) => {
      if (!answer.ok) throw new CoordinatorFailed(answer.refusal.detail);
      return answer.value;
    });
    return {
      asOfMs,
      digests: ranges.map((_, index) => digestOf(parts.flatMap((part) => part[index] ?? []))),
    };
  }

  async lookup(buckets: readonly Bucket[]): Promise<(ApiRecord | ForeignRecord | undefined)[]> {
    const keys = buckets.map(({ type, value }): BucketKey => {
      const made = canonicalOf(shipped, { type, value });
      if (!made.ok) throw new Error(`a verification looked up an invalid name: ${made.detail}`);
      return { type: numberOf(shipped, "bucket", type), canonical: made.canonical };
    });
    const byShard = Map.groupBy(keys.entries(), ([, { type, canonical }]) =>
      shardOf(type, canonical, this.#context.isolate.shards),
    );
    const found: LookupFound[] = [];
    for (const [shard, entries] of byShard) {
      const asked = entries.map(([, key]) => key);
      const answer = valueOf(await this.#tried(() => this.#api.lookup(shard, asked)));
      for (const [at, [index]] of entries.entries()) found[index] = answer.found[at] ?? { kind: "unknown" };
    }
    return found.map((each) => this.#holderOf(each));
  }

  #holderOf(found: LookupFound): ApiRecord | ForeignRecord | undefined {
    if (found.kind === "unknown")
      throw new CoordinatorFailed("the ledger that knows whether this name is taken cannot be reached");
    if (found.kind === "none") return undefined;
    const record = recordOf(found.record);
    if (record.cell_id === this.#cell) return record;
    // A cell sees no more of another cell's record.
    return { bucket: record.bucket, cell_id: record.cell_id, status: record.status };
  }

  /** Retries as the client does. */
  async #tried<T>(call: () => Promise<Answer<T>>): Promise<Answer<T>> {
    for (let tried = 1; ; tried += 1) {
      const answer = await call();
      if (answer.kind !== "unknown" || tried === TRIES) return answer;
      await this.#api.sleep(PAUSE_MS * tried);
    }
  }

  #nowMs(): number {
    return Math.floor(this.#context.scheduler.nowMs);
  }
}

const orders = ({ after, upTo }: IdRange): SourceRange => ({
  after: after === "" ? "" : sourceOrder(after),
  upTo: upTo === undefined ? null : sourceOrder(upTo),
});

const recordOf = (record: ClaimRecord): ApiRecord => toApiRecord(shipped, record) as ApiRecord;

function digestOf(parts: readonly ShardDigest[]): RangeDigest {
  const { count, words, held, newestUpdatedAtMs } = sumOf(parts);
  const sum = new DigestSum();
  sum.add(words);
  return { count, hash: sum.hash, held, newestUpdatedAtMs: newestUpdatedAtMs ?? undefined };
}

export function valueOf<T>(answer: Answer<T>): T {
  if (answer.kind === "ok") return answer.value;
  throw new CoordinatorFailed(answer.kind === "unknown" ? answer.cause : answer.refusal.detail);
}

function resultOf<T>(answer: Answer<T>): Result<T> {
  if (answer.kind === "ok") return { ok: true, value: answer.value };
  return answer.kind === "refused"
    ? { ok: false, refusal: answer.refusal }
    : refused("UNAVAILABLE", answer.cause);
}

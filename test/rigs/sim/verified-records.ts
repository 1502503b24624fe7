import type { Bucket, Record as ApiRecord } from "../../../src/client/api-types.ts";
import { canonicalOf } from "../../../src/cell/verification/row-names.ts";
import type {
  IdRange,
  RangeDigest,
  RecordPage,
  VerifiedRecords,
} from "../../../src/cell/verification/ports.ts";
import { fanOut } from "../../../src/core/fan-out.ts";
import { DigestSum } from "../../../src/core/digest.ts";
import type {
  BucketKey,
  ClaimRecord,
  LookupFound,
  RangeDigest as ShardDigest,
  SourceRange,
} from "../../../src/core/messages.ts";
import { shardOf } from "../../../src/core/placement.ts";
import type { Answer } from "../../../src/core/ports.ts";
import { refused, type Result } from "../../../src/core/refusal.ts";
import { sourceOrder } from "../../../src/core/source-order.ts";
import { mergeRecords } from "../../../src/http/record-merge.ts";
import { toApiRecord } from "../../../src/http/answers.ts";
import type { Api, SimulationContext } from "./api.ts";

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
    const { shards, limits } = this.#context.coordinator;
    const range = { cell: this.#cell, sourceType: source, bucketTypes, ...orders({ after, upTo }) };
    const merge = { shards: shards.length, width: limits.fanOut, limit: pageSize, after: range.after };
    const merged = await mergeRecords(merge, async (shard, from, limit) =>
      resultOf(await this.#tried(() => this.#api.records(shard, { ...range, after: from, limit }))),
    );
    if (!merged.ok) throw new CoordinatorFailed(merged.refusal.detail);
    for (const record of merged.value.records)
      if (record.status === "LEASE_CREATING") this.#context.judge.showed(record);
    return { records: merged.value.records.map(recordOf), asOfMs, nextPageToken: merged.value.next ?? "" };
  }

  async digests({
    source,
    bucketTypes,
    ranges,
  }: Parameters<VerifiedRecords["digests"]>[0]): ReturnType<VerifiedRecords["digests"]> {
    const asOfMs = this.#nowMs();
    const query = { cell: this.#cell, sourceType: source, bucketTypes, ranges: ranges.map(orders) };
    const { shards, limits } = this.#context.coordinator;
    const answers = await fanOut([...shards.keys()], limits.fanOut, async (shard) =>
      valueOf(await this.#tried(() => this.#api.digests(shard, query))),
    );
    return {
      asOfMs,
      digests: ranges.map((_, index) => sumOf(answers.flatMap(({ digests }) => digests[index] ?? []))),
    };
  }

  async lookup(buckets: readonly Bucket[]): Promise<(ApiRecord | "other" | undefined)[]> {
    const keys = buckets.map(({ type, value }): BucketKey => {
      const made = canonicalOf({ type, value });
      if (!made.ok) throw new Error(`a verification looked up an invalid name: ${made.detail}`);
      return { type, canonical: made.canonical };
    });
    const byShard = Map.groupBy(keys.entries(), ([, { type, canonical }]) =>
      shardOf(type, canonical, this.#context.coordinator.shards.length),
    );
    const found: LookupFound[] = [];
    for (const [shard, entries] of byShard) {
      const asked = entries.map(([, key]) => key);
      const answer = valueOf(await this.#tried(() => this.#api.lookup(shard, asked)));
      for (const [at, [index]] of entries.entries()) found[index] = answer.found[at] ?? { kind: "unknown" };
    }
    return found.map((each) => this.#holderOf(each));
  }

  #holderOf(found: LookupFound): ApiRecord | "other" | undefined {
    if (found.kind === "unknown")
      throw new CoordinatorFailed("the ledger that knows whether this name is taken cannot be reached");
    if (found.kind === "none") return undefined;
    return found.record.cell === this.#cell ? recordOf(found.record) : "other";
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

const recordOf = (record: ClaimRecord): ApiRecord => toApiRecord(record);

function sumOf(parts: readonly ShardDigest[]): RangeDigest {
  const sum = new DigestSum();
  for (const { words, count } of parts) sum.add(words, count);
  const newest = parts.flatMap(({ newestUpdatedAtMs }) => newestUpdatedAtMs ?? []);
  const held = parts.some((part) => part.held);
  return {
    count: sum.count,
    hash: sum.hash,
    held,
    newestUpdatedAtMs: newest.length === 0 ? undefined : Math.max(...newest),
  };
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

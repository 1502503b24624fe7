import { DigestSum, digestWordsOf } from "../../../../src/core/digest.ts";
import type {
  DigestRecordsAnswer,
  DigestRecordsRequest,
  RangeDigest,
  SourceRange,
} from "../../../../src/core/messages.ts";
import {
  bucketTypeByNumber,
  sourceTypeByNumber,
  sourceTypes,
  subjectTypeByNumber,
} from "../../../../src/core/registry.ts";
import type { ClaimRow, HoldRow } from "../../../../src/core/shard/rows.ts";
import { SOURCE_ORDER_END } from "../../../../src/core/shard/store.ts";
import type { Sent } from "../network.ts";
import type { Evidence } from "./evidence.ts";

/** Compares digests with the claims of a shard that wrote nothing while it was asked (R4). */
export class DigestWatch {
  readonly #evidence: Evidence;
  /** The durable version when the question was sent, if no write was pending. */
  readonly #asked = new Map<string, number>();

  constructor(evidence: Evidence) {
    this.#evidence = evidence;
  }

  sent(call: Sent): void {
    const { disk } = this.#shard(call.to);
    if (disk.pending === 0 && !this.#asked.has(keyOf(call))) this.#asked.set(keyOf(call), disk.version);
  }

  answered(call: Sent, { digests }: DigestRecordsAnswer): void {
    const { disk } = this.#shard(call.to);
    const version = this.#asked.get(keyOf(call));
    this.#asked.delete(keyOf(call));
    if (disk.pending > 0 || disk.version !== version) return;
    const request = call.message as DigestRecordsRequest;
    for (const [index, range] of request.ranges.entries())
      this.#compare(this.#indexOf(call.to), request, range, digests[index]);
    this.#evidence.see("R4");
  }

  #compare(
    shard: number,
    { cell, sourceType, bucketTypes }: DigestRecordsRequest,
    { after, upTo }: SourceRange,
    digest?: RangeDigest,
  ): void {
    const image = this.#evidence.images[shard];
    if (image === undefined) throw new Error(`there is no shard ${shard}`);
    const { claims, holds } = image;
    const isIn = (row: ClaimRow | HoldRow | undefined): boolean =>
      row?.cell === cell &&
      row.source_type === sourceTypes[sourceType].number &&
      (bucketTypes as string[]).includes(bucketTypeByNumber(row.bucket_type) ?? "") &&
      row.source_order !== null &&
      Buffer.compare(Buffer.from(row.source_order), Buffer.from(after)) > 0 &&
      Buffer.compare(Buffer.from(row.source_order), Buffer.from(upTo ?? SOURCE_ORDER_END)) <= 0;
    const its = [...claims.values()].filter(isIn);
    const held = [...holds].some(
      ([key, hold]) => isIn(hold) || (hold.cell === cell && isIn(claims.get(key))),
    );
    const [sum, answered] = [new DigestSum(), new DigestSum()];
    for (const claim of its) sum.add(digestWordsOf(digestedOf(claim)));
    if (digest !== undefined) answered.add(digest.words, digest.count);
    const newestMs = its.length === 0 ? null : Math.max(...its.map((claim) => claim.updated_at_ms));
    const isRight =
      sum.count === answered.count && sum.hash === answered.hash && digest?.newestUpdatedAtMs === newestMs;
    this.#evidence.check(
      "I21",
      isRight,
      () => `the digest of a range of cell ${cell} on shard ${shard} does not match its ${sum.count} claims`,
    );
    this.#evidence.check(
      "I21",
      digest?.held === held,
      () =>
        `a range of cell ${cell} on shard ${shard} is ${held ? "" : "not "}held, but is reported otherwise`,
    );
    if (held) this.#evidence.see("digest held");
  }

  #indexOf(name: string): number {
    return Number(name.slice("shard ".length));
  }

  #shard(name: string): ReturnType<Evidence["coordinator"]["shard"]> {
    return this.#evidence.coordinator.shard(this.#indexOf(name));
  }
}

const keyOf = ({ from, to, message }: Sent): string => JSON.stringify([from.name, to, message]);

function digestedOf(claim: ClaimRow): Parameters<typeof digestWordsOf>[0] {
  const type = bucketTypeByNumber(claim.bucket_type);
  const subjectType = subjectTypeByNumber(claim.subject_type);
  const sourceType = sourceTypeByNumber(claim.source_type);
  if (type === undefined || subjectType === undefined || sourceType === undefined)
    throw new Error("a claim has an unknown type");
  const { canonical, value, subject_id: subjectId, source_id: sourceId } = claim;
  return {
    type,
    canonical,
    value,
    subject: { type: subjectType, id: subjectId },
    source: { type: sourceType, id: sourceId },
  };
}

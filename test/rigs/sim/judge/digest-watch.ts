import { DigestSum, digestWordsOf } from "../../../../src/core/digest.ts";
import type {
  DigestRecordsAnswer,
  DigestRecordsRequest,
  RangeDigest,
  SourceRange,
} from "../../../../src/core/messages.ts";
import type { ClaimRow, HoldRow } from "../../../../src/core/shard/rows.ts";
import { sumOf } from "../../../../src/http/digest-parts.ts";
import { SOURCE_ORDER_END } from "../../../../src/core/shard/scan-store.ts";
import type { Sent } from "../network.ts";
import type { Evidence } from "./evidence.ts";

/** Compares digests with the claims of a shard that wrote nothing while it was asked (R4). */
export class DigestWatch {
  readonly #evidence: Evidence;
  /** The durable version when the question arrived, if no write was pending. */
  readonly #asked = new WeakMap<Sent, number>();
  /** The sums of the parts of ranges that are not read to their ends. */
  readonly #parts = new Map<string, RangeDigest>();

  constructor(evidence: Evidence) {
    this.#evidence = evidence;
  }

  delivered(call: Sent): void {
    const { disk } = this.#shard(call.to);
    if (disk.pending === 0) this.#asked.set(call, disk.version);
  }

  answered(call: Sent, { digests, next }: DigestRecordsAnswer): void {
    const { disk } = this.#shard(call.to);
    const version = this.#asked.get(call);
    const request = call.message as DigestRecordsRequest;
    const { range: first, rest } = request.cursor ?? { range: 0, rest: null };
    const isSteady = disk.pending === 0 && disk.version === version;
    for (const [index, digest] of digests.entries()) {
      const earlier =
        index === 0 && rest !== null ? this.#parts.get(partKey(call, request, rest)) : undefined;
      // The first parts were answered to an earlier process, which has ended.
      if (index === 0 && rest !== null && earlier === undefined) continue;
      const whole = earlier === undefined ? digest : sumOf([earlier, digest]);
      if (index === digests.length - 1 && next !== null && next.rest !== null)
        this.#parts.set(partKey(call, request, next.rest), whole);
      else if (isSteady)
        this.#compare(call, request, request.ranges[first + index], whole, earlier !== undefined);
    }
    if (isSteady) this.#evidence.see("R4");
  }

  #compare(
    { to }: Sent,
    { cell, sourceType, bucketTypes, cursor }: DigestRecordsRequest,
    range: SourceRange | undefined,
    digest: RangeDigest,
    isInParts: boolean,
  ): void {
    const shard = this.#indexOf(to);
    if (range === undefined) throw new Error("a shard answered a digest of no range");
    const { after, upTo } = range;
    const image = this.#evidence.images[shard];
    if (image === undefined) throw new Error(`there is no shard ${shard}`);
    const { claims, holds } = image;
    const isIn = (row: ClaimRow | HoldRow | undefined): boolean =>
      row?.cell === cell &&
      row.source_type === sourceType &&
      (bucketTypes === null || bucketTypes.includes(row.bucket_type)) &&
      row.source_order !== null &&
      Buffer.compare(Buffer.from(row.source_order), Buffer.from(after)) > 0 &&
      Buffer.compare(Buffer.from(row.source_order), Buffer.from(upTo ?? SOURCE_ORDER_END)) <= 0;
    const its = [...claims.values()].filter(isIn);
    const held = [...holds].some(
      ([key, hold]) => isIn(hold) || (hold.cell === cell && isIn(claims.get(key))),
    );
    const [sum, answered] = [new DigestSum(), new DigestSum()];
    for (const claim of its) sum.add(digestWordsOf(digestedOf(claim)));
    answered.add(digest.words, digest.count);
    const newestMs = its.length === 0 ? null : Math.max(...its.map((claim) => claim.updated_at_ms));
    // Parts of different moments are void. Other parts add up to one moment, which is now.
    const isRight =
      (isInParts && digest.held) ||
      (sum.count === answered.count && sum.hash === answered.hash && digest.newestUpdatedAtMs === newestMs);
    this.#evidence.check(
      "I21",
      isRight,
      () => `the digest of a range of cell ${cell} on shard ${shard} does not match its ${sum.count} claims`,
    );
    if (isInParts && !digest.held) this.#evidence.see("digest in parts");
    // Later messages don't read the holds again, so they say nothing about newer holds.
    if (cursor !== null) return;
    this.#evidence.check(
      "I21",
      digest.held === held,
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

const partKey = (
  { from, to }: Sent,
  { cell, sourceType, bucketTypes, ranges }: DigestRecordsRequest,
  rest: object,
) => JSON.stringify([from.name, to, cell, sourceType, bucketTypes, ranges, rest]);

export function digestedOf(claim: ClaimRow): Parameters<typeof digestWordsOf>[0] {
  const { canonical, value, subject_id: subjectId, source_id: sourceId } = claim;
  return {
    type: claim.bucket_type,
    canonical,
    value,
    subject: { type: claim.subject_type, id: subjectId },
    source: { type: claim.source_type, id: sourceId },
    scope: claim.scope,
  };
}

import { DigestSum, digestWordsOf } from "../../../../src/common/digest.ts";
import type { Inquiry } from "../../../../src/coordinator/kernel/messages.ts";
import type {
  DigestRecordsAnswer,
  DigestRecordsRequest,
  RangeDigest,
  SourceRange,
} from "../../../../src/coordinator/capabilities/records/messages.ts";
import type { ClaimRow, ExecutionId, HoldRow } from "../../../../src/coordinator/kernel/shard/rows.ts";
import { sumOf } from "../../../../src/coordinator/capabilities/records/edge/digest-parts.ts";
import { SOURCE_ORDER_END } from "../../../../src/coordinator/capabilities/records/scan-store.ts";
import type { Sent } from "../network.ts";
import type { Evidence } from "./evidence.ts";
import type { ShardImage } from "./rows.ts";

/** What a shard has done since it was asked for a digest. */
interface Asked {
  /** The durable version when the question arrived, if no write was pending. */
  version: number | undefined;
  /** The executions of the holds that the shard had then. */
  held: ReadonlySet<string>;
  /** The executions that the shard has asked ledgers about since. */
  inquired: Set<string>;
}

/**
 * Compares digests with the claims of a shard that wrote nothing while it was asked, and checks that the
 * shard has asked about each hold that makes one void (R4).
 */
export class DigestWatch {
  readonly #evidence: Evidence;
  readonly #asked = new Map<Sent, Asked>();
  /** The sums of the parts of ranges that are not read to their ends. */
  readonly #parts = new Map<string, RangeDigest>();

  constructor(evidence: Evidence) {
    this.#evidence = evidence;
  }

  delivered(call: Sent): void {
    const { disk } = this.#shard(call.to);
    this.#asked.set(call, {
      version: disk.pending === 0 ? disk.version : undefined,
      held: new Set([...this.#image(call.to).holds.values()].map(executionOf)),
      inquired: new Set(),
    });
  }

  /** A shard asks a ledger about holds. */
  inquired({ from, message }: Sent): void {
    for (const [{ to }, { inquired }] of this.#asked)
      if (to === from.name)
        for (const question of (message as Inquiry).questions) inquired.add(executionOf(question));
  }

  answered(call: Sent, answer: DigestRecordsAnswer | undefined): void {
    const { disk } = this.#shard(call.to);
    const asked = this.#asked.get(call);
    this.#asked.delete(call);
    if (answer === undefined) return;
    const { digests, next } = answer;
    const request = call.message as DigestRecordsRequest;
    const { range: first, rest } = request.cursor ?? { range: 0, rest: null };
    const isSteady = disk.pending === 0 && disk.version === asked?.version;
    for (const [index, digest] of digests.entries()) {
      const earlier =
        index === 0 && rest !== null ? this.#parts.get(partKey(call, request, rest)) : undefined;
      // The first parts were answered to an earlier process, which has ended.
      if (index === 0 && rest !== null && earlier === undefined) continue;
      const range = request.ranges[first + index];
      if (range === undefined) throw new Error("a shard answered a digest of no range");
      if (asked !== undefined && request.cursor === null && digest.held)
        this.#checkInquired(call, request, range, asked);
      const whole = earlier === undefined ? digest : sumOf([earlier, digest]);
      if (index === digests.length - 1 && next !== null && next.rest !== null)
        this.#parts.set(partKey(call, request, next.rest), whole);
      else if (isSteady) this.#compare(call, request, range, whole, earlier !== undefined);
    }
    if (isSteady) this.#evidence.see("R4");
  }

  /** A decision that was acknowledged before the call must not make a digest void. */
  #checkInquired(
    { to }: Sent,
    request: DigestRecordsRequest,
    range: SourceRange,
    { held, inquired }: Asked,
  ): void {
    const before = this.#touching(to, request, range).filter((hold) => held.has(executionOf(hold)));
    for (const hold of before)
      this.#evidence.check(
        "I21",
        inquired.has(executionOf(hold)),
        () => `${to} reports a range as held by ${hold.lease}, and has not asked about it`,
      );
    if (before.length > 0) this.#evidence.see("digest asked");
  }

  /** The holds of the cell that will put a claim into a range, or that are on a claim in it. */
  #touching(shard: string, request: DigestRecordsRequest, range: SourceRange): HoldRow[] {
    const { claims, holds } = this.#image(shard);
    return [...holds]
      .filter(
        ([key, hold]) =>
          isIn(hold, request, range) || (hold.cell === request.cell && isIn(claims.get(key), request, range)),
      )
      .map(([, hold]) => hold);
  }

  #image(shard: string): ShardImage {
    const image = this.#evidence.images[this.#indexOf(shard)];
    if (image === undefined) throw new Error(`there is no ${shard}`);
    return image;
  }

  #compare(
    { to }: Sent,
    request: DigestRecordsRequest,
    range: SourceRange,
    digest: RangeDigest,
    isInParts: boolean,
  ): void {
    const shard = this.#indexOf(to);
    const { cell } = request;
    const its = [...this.#image(to).claims.values()].filter((claim) => isIn(claim, request, range));
    const held = this.#touching(to, request, range).length > 0;
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
    if (request.cursor !== null) return;
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

function isIn(
  row: ClaimRow | HoldRow | undefined,
  { cell, sourceType, bucketTypes }: DigestRecordsRequest,
  { after, upTo }: SourceRange,
): boolean {
  return (
    row?.cell === cell &&
    row.source_type === sourceType &&
    (bucketTypes === null || bucketTypes.includes(row.bucket_type)) &&
    row.source_order !== null &&
    Buffer.compare(Buffer.from(row.source_order), Buffer.from(after)) > 0 &&
    Buffer.compare(Buffer.from(row.source_order), Buffer.from(upTo ?? SOURCE_ORDER_END)) <= 0
  );
}

/** Identifies an execution in the messages of one shard. */
const executionOf = ({ lease, incarnation, counter, epoch }: Omit<ExecutionId, "cell">): string =>
  `${lease}/${incarnation}.${counter}/${epoch}`;

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

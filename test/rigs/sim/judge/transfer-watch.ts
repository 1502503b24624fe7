import { DigestSum } from "../../../../src/common/digest.ts";
import type { ClaimRecord, LookupFound } from "../../../../src/coordinator/kernel/messages.ts";
import type { RangeHoldRow } from "../../../../src/coordinator/capabilities/transfer/range-holds.ts";
import type { ClaimRow } from "../../../../src/coordinator/kernel/shard/rows.ts";
import type {
  StoredTransfer,
  TransferRecord,
} from "../../../../src/coordinator/capabilities/transfer/ledger-store.ts";
import type { DigestedClaims } from "../../../../src/coordinator/capabilities/transfer/range.ts";
import { nameKey, type Name } from "../local.ts";
import type { Evidence } from "./evidence.ts";
import { rangeOver, sameRange, type Facts, type ShardImage } from "./rows.ts";

type TransferImage = ShardImage["stored"] & Pick<ShardImage, "ranges">;
import { Truths } from "./truths.ts";

/** Checks the transfers of scopes between cells (Y1 to Y6). */
export class TransferWatch {
  readonly #evidence: Evidence;
  /** Undefined in a run without transfers. */
  truths: Truths | undefined;

  constructor(evidence: Evidence) {
    this.#evidence = evidence;
  }

  /** Begins to watch what lookups show of these names. */
  watch(names: readonly Name[]): void {
    this.truths = new Truths(this.#evidence, names);
  }

  refresh(): void {
    this.truths?.refresh();
  }

  /** The lease of a transfer is granted, so every shard holds its scope until it is decided. */
  granted({ lease, row, execution }: Facts): void {
    if (row.transfer === null) return;
    for (const [shard, { ranges, growing }] of this.#evidence.images.entries()) {
      // A new shard that serves nothing yet has no placement (G5).
      if (growing.shards === 0) continue;
      const isHeld = [...ranges.values()].some(({ epoch }) => epoch === execution?.epochs[shard]);
      this.#evidence.check("I51", isHeld, () => `transfer ${lease} is prepared without shard ${shard}`);
    }
    this.#evidence.see("Y1");
  }

  /** A cut needs that both cells have verified the claims as they are (Y6). */
  decided({ cell, lease, row, state, decidedAtMs, execution }: Facts): void {
    if (row.transfer === null) return;
    this.#evidence.see(state === "COMMITTED" ? "a transfer was cut" : "a transfer was aborted");
    if (state !== "COMMITTED") return;
    const [from, scope] = JSON.parse(row.transfer) as [string, string];
    const early = this.#evidence.images.findIndex(({ ranges }, shard) =>
      [...ranges.values()].some(
        (range) => range.epoch === execution?.epochs[shard] && range.is_precommitted === 0,
      ),
    );
    this.#evidence.check(
      "I50",
      early === -1,
      () => `transfer ${lease} is cut, but shard ${early} has not stored that it may be`,
    );
    const { accepted, reports, shards } = this.#recordOf(cell, lease);
    const moved = this.#evidence.claims().filter((claim) => claim.scope === scope && claim.cell === from);
    // What the destination had before may have changed since (Y3).
    const counted = new DigestSum();
    for (const { from: source, to } of shards)
      for (const { hash, count } of [source, to]) counted.addHash(hash, count);
    const isVerified = isOf(reports.from, moved) && isSum(reports.to, counted);
    const { transferVerifiedS } = this.#evidence.coordinator.limits;
    const agesMs = [reports.from, reports.to].map((report) => (row.decided_at_ms ?? 0) - (report?.atMs ?? 0));
    this.#evidence.check(
      "I50",
      accepted !== null && isVerified && agesMs.every((ageMs) => ageMs <= transferVerifiedS * 1_000),
      () =>
        `transfer ${lease} of ${moved.length} claims is cut with ${JSON.stringify({ accepted, reports })}`,
    );
    if (decidedAtMs !== undefined) this.#evidence.see("Y6");
  }

  #recordOf(cell: string, id: string): TransferRecord {
    const { disk } = this.#evidence.coordinator.ledger(cell);
    const [row] = disk.readDurable<Record<keyof StoredTransfer, string>>(
      "SELECT record FROM transfer WHERE id = ?",
      id,
    );
    return JSON.parse(row?.record ?? "{}") as TransferRecord;
  }

  /**
   * The ledger counts the decision as applied on every shard. A late prepare may hold the scope again, with
   * another epoch, until the shard has asked the ledger.
   */
  applied({ cell, lease, row, execution }: Facts): void {
    if (row.transfer === null) return;
    const left = this.#evidence.images.findIndex(({ ranges }, shard) =>
      [...ranges.values()].some(
        (range) => range.cell === cell && range.lease === lease && range.epoch === execution?.epochs[shard],
      ),
    );
    this.#evidence.check(
      "I51",
      left === -1,
      () => `transfer ${lease} counts as applied, but shard ${left} still holds its scope`,
    );
  }

  /** The durable rows of a shard have changed: its claims and holds are those of the image. */
  changed(shard: number, image: TransferImage, ranges: ReadonlyMap<string, RangeHoldRow>): void {
    for (const range of image.ranges.values()) {
      if (sameRange(ranges, range) === undefined) this.#ended(shard, image, range);
    }
    for (const range of ranges.values()) {
      const { cell: to, from_cell: from, scope } = range;
      if (sameRange(image.ranges, range) === undefined) this.#evidence.see("Y2");
      for (const [key, hold] of image.holds) {
        const claim = image.claims.get(key);
        const isOfSource = claim?.scope === scope && claim.cell === from;
        const isInWay =
          (isOfSource && (hold.cell === from || hold.cell === to)) ||
          (hold.cell === from && hold.scope === scope);
        this.#evidence.check(
          "I51",
          !isInWay,
          () =>
            `lease ${hold.lease} of cell ${hold.cell} holds ${key} in the scope of transfer ${range.lease}`,
        );
      }
    }
  }

  /** A range hold ends when the transfer was aborted, or when all claims are moved. */
  #ended(shard: number, { claims }: TransferImage, range: RangeHoldRow): void {
    const { cell, lease, from_cell: from, scope } = range;
    const state = this.#evidence.stateOf(range, shard);
    this.#evidence.check(
      "I51",
      state !== "GRANTED",
      () => `shard ${shard} does not hold the scope of the prepared transfer ${lease} any more`,
    );
    if (state !== "COMMITTED") return;
    const left = [...claims.values()].find((claim) => claim.cell === from && claim.scope === scope);
    this.#evidence.check(
      "I51",
      left === undefined,
      () => `the transfer ${lease} to cell ${cell} has left ${left?.canonical} on shard ${shard}`,
    );
  }

  /** Returns whether a transfer that was cut has given a claim to its destination. */
  moved(
    shard: number,
    claim: ClaimRow | undefined,
    next: ClaimRow | undefined,
    ranges: ReadonlyMap<string, RangeHoldRow>,
  ): boolean {
    const range = rangeOver(ranges, claim);
    if (claim === undefined || next === undefined || range === undefined) return false;
    const isCut = this.#evidence.stateOf(range, shard) === "COMMITTED";
    const { cell, epoch } = range;
    const { updated_at_ms: updatedAtMs } = next;
    const isRight =
      JSON.stringify({ ...claim, cell, epoch, updated_at_ms: updatedAtMs }) === JSON.stringify(next);
    this.#evidence.check(
      "I50",
      isCut && isRight && epoch > claim.epoch,
      () => `${JSON.stringify(claim)} became ${JSON.stringify(next)} by ${JSON.stringify(range)}`,
    );
    this.#evidence.see("Y5");
    return true;
  }

  /** All records of a cell's names on a shard were read, from `startedMs` on. */
  listed(cell: string, names: readonly Name[], startedMs: number, records: readonly ClaimRecord[]): void {
    const { truths } = this;
    if (truths === undefined) return;
    for (const name of names) {
      const key = nameKey(name);
      const record = records.find((each) => nameKey(each) === key);
      const isRight =
        record === undefined
          ? truths.wasNotOf(cell, key, startedMs)
          : truths.wasTrue(key, `cell ${record.cell} epoch ${record.epoch}`, startedMs);
      this.#evidence.check(
        "I52",
        isRight,
        () =>
          `the list of cell ${cell} has ${record === undefined ? "no" : `epoch ${record.epoch} of`} ` +
          `${key}, but: ${truths.describe(key, startedMs)}`,
      );
    }
  }

  /** A lookup that began at `startedMs` was answered. */
  lookedUp(name: Name, startedMs: number, found: LookupFound): void {
    if (found.kind === "unknown" || this.truths === undefined) return;
    const key = nameKey(name);
    const shown = found.kind === "none" ? "none" : `cell ${found.record.cell} epoch ${found.record.epoch}`;
    this.#evidence.check(
      "I52",
      this.truths.wasTrue(key, shown, startedMs),
      () => `a lookup shows ${key} as ${shown}, but: ${this.truths?.describe(key, startedMs)}`,
    );
  }
}

/** Whether a report has the number and the digest of some claims (R4). */
function isOf(report: DigestedClaims | null, claims: readonly ClaimRow[]): boolean {
  const sum = new DigestSum();
  for (const claim of claims) sum.add([claim.digest_0, claim.digest_1, claim.digest_2, claim.digest_3]);
  return isSum(report, sum);
}

const isSum = (report: DigestedClaims | null, sum: DigestSum): boolean =>
  report?.count === sum.count && report.hash === sum.hash;

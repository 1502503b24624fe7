import { shardOf } from "../../../../src/core/placement.ts";
import type { PastClaimRow } from "../../../../src/core/shard/past-claims.ts";
import type { RangeHoldRow } from "../../../../src/core/shard/range-holds.ts";
import type { ClaimRow, HoldRow } from "../../../../src/core/shard/rows.ts";
import type { Part } from "../part.ts";
import { Violation } from "../violation.ts";
import type { Evidence } from "./evidence.ts";
import { factKey, rowKey, type ShardImage } from "./rows.ts";
import type { TransferWatch } from "./transfer-watch.ts";

/** Checks every change of what is durable on a shard. */
export class ShardWatch {
  readonly #evidence: Evidence;
  readonly #transfers: TransferWatch;
  readonly #held: (hold: HoldRow) => void;
  readonly #epochs = new Map<string, number>();

  /** @param held called for each new hold */
  constructor(evidence: Evidence, transfers: TransferWatch, held: (hold: HoldRow) => void) {
    this.#evidence = evidence;
    this.#transfers = transfers;
    this.#held = held;
  }

  refresh(): void {
    for (const [index, part] of this.#evidence.coordinator.shards.entries()) {
      const image = this.#evidence.images[index];
      if (image !== undefined && image.version !== part.disk.version) this.#readShard(index, part, image);
    }
  }

  #readShard(index: number, part: Part<object>, image: ShardImage): void {
    image.version = part.disk.version;
    const hasTables = part.disk.readDurable("SELECT 1 FROM sqlite_master WHERE name = 'hold'").length > 0;
    if (!hasTables) return;
    const claims = new Map(
      part.disk.readDurable<ClaimRow>("SELECT * FROM claim").map((row) => [rowKey(row), row]),
    );
    const holds = new Map(
      part.disk.readDurable<HoldRow>("SELECT * FROM hold").map((row) => [rowKey(row), row]),
    );
    const ranges = new Map(
      part.disk.readDurable<RangeHoldRow>("SELECT * FROM range_hold").map((row) => [row.scope, row]),
    );
    const before = { claims: image.claims, holds: image.holds };
    this.#checkKept(part, image, claims);
    image.claims = claims;
    image.holds = holds;
    this.#transfers.changed(index, image, ranges);
    const rangesBefore = image.ranges;
    image.ranges = ranges;
    for (const key of new Set([
      ...before.claims.keys(),
      ...before.holds.keys(),
      ...claims.keys(),
      ...holds.keys(),
    ])) {
      this.#checkShardOfKey(index, key);
      this.#checkKey(
        index,
        key,
        before.claims.get(key),
        before.holds.get(key),
        claims.get(key),
        holds.get(key),
        rangesBefore,
      );
      this.checkProtected(key);
    }
  }

  /** Checks that the claims that a transaction ended became past claims, and that nothing else did (K1). */
  #checkKept({ name, disk }: Part<object>, image: ShardImage, claims: ShardImage["claims"]): void {
    const past = disk.readDurable<PastClaimRow>("SELECT * FROM past_claim");
    const ended = [...image.claims].filter(([key, { epoch }]) => claims.get(key)?.epoch !== epoch);
    const before = image.pastClaims;
    const isSameHistory = image.wentBack === disk.wentBack;
    image.pastClaims = past.length;
    image.wentBack = disk.wentBack;
    if (!isSameHistory) return;
    for (const [key, claim] of ended) {
      const hold = image.holds.get(key) ?? image.ranges.get(claim.scope ?? "");
      const row = past.find((each) => rowKey(each) === key && each.epoch === claim.epoch);
      this.#evidence.check(
        "I35",
        row !== undefined && hold !== undefined && isKeptAs(row, claim, hold),
        () => `${name} has ended the claim ${JSON.stringify(claim)}, but keeps ${JSON.stringify(row)}`,
      );
      this.#evidence.see("K1");
    }
    const added = past.length - before;
    this.#evidence.check(
      "I35",
      added === ended.length || (this.#evidence.mayForget && added < ended.length),
      () => `${name} has ended ${ended.length} claims, but keeps ${added} more than before`,
    );
  }

  #checkShardOfKey(index: number, key: string): void {
    const [type, canonical] = [Number(key.slice(0, key.indexOf(":"))), key.slice(key.indexOf(":") + 1)];
    const home = shardOf(type, canonical, this.#evidence.coordinator.shards.length);
    this.#evidence.check(
      "I1",
      home === index,
      () => `${key} is on shard ${index}, but belongs to shard ${home}`,
    );
  }

  /** Checks one bucket before and after a transaction of its shard. */
  #checkKey(
    shard: number,
    key: string,
    claim: ClaimRow | undefined,
    hold: HoldRow | undefined,
    nextClaim: ClaimRow | undefined,
    nextHold: HoldRow | undefined,
    ranges: ReadonlyMap<string, RangeHoldRow>,
  ): void {
    const isSameHold = hold !== undefined && nextHold !== undefined && identity(hold) === identity(nextHold);
    const isSameClaim = JSON.stringify(claim) === JSON.stringify(nextClaim);
    if (hold !== undefined && !isSameHold) this.#holdEnded(shard, key, hold, claim, nextClaim);
    else if (!isSameClaim && this.#transfers.moved(shard, claim, nextClaim, ranges)) return;
    else this.#evidence.check("I2", isSameClaim, () => `the claim on ${key} changed without a hold`);
    if (nextHold === undefined || isSameHold) return;
    this.#held(nextHold);
    const mayTouch = nextHold.kind === "create" ? nextClaim === undefined : nextClaim?.cell === nextHold.cell;
    this.#evidence.check(
      "I3",
      mayTouch,
      () =>
        `cell ${nextHold.cell} holds ${key} for a ${nextHold.kind}, ` +
        `but the owner is ${nextClaim?.cell ?? "none"}`,
    );
    const last = this.#epochs.get(key) ?? 0;
    this.#evidence.check(
      "I2",
      nextHold.epoch > last,
      () => `${key} is held with epoch ${nextHold.epoch}, after ${last}`,
    );
    if (last > 0) this.#evidence.see("E1");
    this.#epochs.set(key, nextHold.epoch);
  }

  /**
   * A hold may only end if its lease is decided or was never granted. The claim must then match the outcome.
   */
  #holdEnded(
    shard: number,
    key: string,
    hold: HoldRow,
    claim: ClaimRow | undefined,
    nextClaim: ClaimRow | undefined,
  ): void {
    const fact = this.#evidence.facts.get(factKey(hold.cell, hold.lease));
    const { execution } = fact ?? {};
    const isGrant =
      execution !== undefined &&
      execution.incarnation === hold.incarnation &&
      execution.counter === hold.counter &&
      execution.epochs[shard] === hold.epoch;
    this.#evidence.check(
      "I4",
      !isGrant || fact?.state !== "GRANTED",
      () => `the hold of the granted lease ${hold.lease} of cell ${hold.cell} on ${key} is gone`,
    );
    const isCommitted = isGrant && fact?.state === "COMMITTED";
    const isRight = isCommitted
      ? isCommittedAs(hold, nextClaim)
      : JSON.stringify(claim) === JSON.stringify(nextClaim);
    this.#evidence.check("I5", isRight, () => {
      const outcome = isCommitted ? "committed" : "not committed";
      return (
        `the ${hold.kind} of ${key} by lease ${hold.lease} of cell ${hold.cell} was ` +
        `${outcome}, but the claim is of ${nextClaim?.cell ?? "none"}`
      );
    });
    if (!isGrant) this.#evidence.see("B7");
  }

  /** A name that a cell has a row for must be claimed for that cell. */
  checkProtected(key: string): void {
    const cell = this.#evidence.inUse.get(key);
    if (cell === undefined) return;
    for (const { claims, holds } of this.#evidence.images) {
      if (claims.get(key)?.cell === cell) return this.#evidence.see("I5");
      const hold = holds.get(key);
      const fact = hold === undefined ? undefined : this.#evidence.facts.get(factKey(hold.cell, hold.lease));
      if (hold?.kind === "create" && hold.cell === cell && fact !== undefined && fact.state !== "ROLLED_BACK")
        return this.#evidence.see("I5");
    }
    throw new Violation("I5", `cell ${cell} uses ${key} without a claim`);
  }
}

function isKeptAs(row: PastClaimRow, claim: ClaimRow, hold: HoldRow | RangeHoldRow): boolean {
  const isMoved = "from_cell" in hold;
  return (
    row.value === claim.value &&
    row.cell === claim.cell &&
    row.subject_type === claim.subject_type &&
    row.subject_id === claim.subject_id &&
    row.source_type === claim.source_type &&
    row.source_id === claim.source_id &&
    row.from_ms === claim.updated_at_ms &&
    row.until_ms >= row.from_ms &&
    row.ended_by === hold.lease &&
    row.ended_kind === (isMoved ? "move" : hold.kind) &&
    (isMoved ? hold.from_cell : hold.cell) === claim.cell
  );
}

const identity = ({ cell, lease, incarnation, counter, epoch }: HoldRow): string =>
  `${cell}/${lease}/${incarnation}.${counter}/${epoch}`;

function isCommittedAs(hold: HoldRow, claim: ClaimRow | undefined): boolean {
  if (hold.kind === "destroy") return claim === undefined;
  return (
    claim !== undefined &&
    claim.cell === hold.cell &&
    claim.epoch === hold.epoch &&
    claim.value === hold.value &&
    claim.source_type === hold.source_type &&
    claim.source_id === hold.source_id &&
    claim.subject_type === hold.subject_type &&
    claim.subject_id === hold.subject_id
  );
}

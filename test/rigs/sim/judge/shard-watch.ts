import { shardsOf } from "../../../../src/coordinator/kernel/placement.ts";
import { FIRST_HOLD } from "../../../../src/coordinator/kernel/shard/held-names.ts";
import type { PastClaimRow } from "../../../../src/coordinator/capabilities/past-claims/shard.ts";
import type { RangeHoldRow } from "../../../../src/coordinator/capabilities/transfer/range-holds.ts";
import type { ClaimRow, HoldRow } from "../../../../src/coordinator/kernel/shard/rows.ts";
import type { Part } from "../part.ts";
import { Violation } from "../violation.ts";
import type { Evidence } from "./evidence.ts";
import { LOG_ROWS, loggedHolds, readAtStart, type LogRow } from "./logged-holds.ts";
import { factKey, rangeOver, rangesByKey, rowKey, type GrowingShard, type ShardImage } from "./rows.ts";
import type { TransferWatch } from "./transfer-watch.ts";

type Moved = (from: number, to: number, claim: ClaimRow) => void;

/** Checks every change of what is durable on a shard. */
export class ShardWatch {
  readonly #evidence: Evidence;
  readonly #transfers: TransferWatch;
  readonly #held: (hold: HoldRow) => void;
  readonly #moved: Moved;
  readonly #epochs = new Map<string, number>();

  /**
   * @param held called for each new hold
   * @param moved called for each claim that another shard serves from now on
   */
  constructor(evidence: Evidence, transfers: TransferWatch, held: (hold: HoldRow) => void, moved: Moved) {
    this.#evidence = evidence;
    this.#transfers = transfers;
    this.#held = held;
    this.#moved = moved;
  }

  refresh(): void {
    for (const [index, part] of this.#evidence.coordinator.allShards.entries()) {
      const image = this.#evidence.images[index];
      if (image !== undefined && image.version !== part.disk.version) this.#readShard(index, part, image);
    }
  }

  #readShard(index: number, part: Part<object>, image: ShardImage): void {
    image.version = part.disk.version;
    const hasTables = part.disk.readDurable("SELECT 1 FROM sqlite_master WHERE name = 'log'").length > 0;
    if (!hasTables) return;
    const { stored: before, growing } = image;
    image.stored = {
      claims: new Map(
        part.disk.readDurable<ClaimRow>("SELECT * FROM claim").map((row) => [rowKey(row), row]),
      ),
      holds: this.#readHolds(part),
    };
    image.growing = readGrowing(part);
    const ranges = rangesByKey(part.disk.readDurable<RangeHoldRow>("SELECT * FROM range_hold"));
    this.#transfers.changed(index, { ...image.stored, ranges: image.ranges }, ranges);
    const isSame = growingText(image.growing) === growingText(growing);
    const changed = isSame
      ? [before, image.stored]
      : [before, ...this.#evidence.images.map(({ stored }) => stored)];
    const keys = new Set(changed.flatMap(({ claims, holds }) => [...claims.keys(), ...holds.keys()]));
    for (const each of this.#evidence.images) {
      each.claims = new Map(each.claims);
      each.holds = new Map(each.holds);
    }
    const earlier = { claims: new Map(image.claims), holds: new Map(image.holds) };
    for (const key of keys) this.#readKey(key);
    const mayDelete = [growing, image.growing].some(
      ({ fencedFrom, target }) => fencedFrom !== undefined || target !== undefined,
    );
    this.#checkKept(part, image, earlier, mayDelete);
    image.ranges = ranges;
    for (const key of keys) this.checkProtected(key);
  }

  /** Compares the holds of all rows with those that a start reads, and with the memory of the instance. */
  #readHolds(part: Part<object>): Map<string, HoldRow> {
    const rows = part.disk.readDurable<LogRow>(LOG_ROWS);
    const holds = loggedHolds(rows);
    this.#checkHolds(`${part.name}, at a start`, holds, loggedHolds(readAtStart(rows)));
    const memory = this.#evidence.coordinator.held.get(part);
    if (memory !== undefined && part.current !== undefined) {
      const live = loggedHolds(part.disk.all<LogRow>(LOG_ROWS, [], undefined));
      const { entries } = memory.after(FIRST_HOLD, Infinity);
      this.#checkHolds(
        `${part.name}, in memory`,
        live,
        entries.flatMap((entry) => memory.holdsOf(entry)),
      );
    }
    return new Map(holds.map((row) => [rowKey(row), row]));
  }

  #checkHolds(where: string, logged: readonly HoldRow[], known: readonly HoldRow[]): void {
    const texts = (rows: readonly HoldRow[]): Set<string> => new Set(rows.map((row) => JSON.stringify(row)));
    const [right, found] = [texts(logged), texts(known)];
    const wrong = [...right.symmetricDifference(found)][0];
    this.#evidence.check(
      "I57",
      wrong === undefined && known.length === found.size,
      () => `${where}: ${right.has(wrong ?? "") ? "not found" : "not in the log"}: ${wrong}`,
    );
    if (found.size === 0) return;
    this.#evidence.see("I57");
    this.#evidence.see("H10");
  }

  /** Checks one name before and after a transaction of one shard, wherever its rows are. */
  #readKey(key: string): void {
    const { images } = this.#evidence;
    const type = Number(key.slice(0, key.indexOf(":")));
    const bucket = { type, canonical: key.slice(key.indexOf(":") + 1) };
    const servers = this.#evidence.serversOf(bucket);
    this.#evidence.check(
      "I47",
      servers.length <= 1,
      () => `${key} is served by the shards ${servers.join(" and ")}`,
    );
    if (servers.length === 0 && images.some(({ growing }) => growing.fencedFrom !== undefined))
      this.#evidence.see("G5");
    const home = this.#evidence.homeOf(bucket);
    for (const [index, image] of images.entries()) {
      if (index === home) continue;
      const { stored, growing } = image;
      const isStored = stored.claims.has(key) || stored.holds.has(key);
      const isMoving =
        growing.shards === 0 || growing.fencedFrom !== undefined || growing.target !== undefined;
      this.#evidence.check(
        "I1",
        !isStored || isMoving,
        () => `${key} is on shard ${index}, but belongs to shard ${home}`,
      );
    }
    const before = images.findIndex(({ claims, holds }) => claims.has(key) || holds.has(key));
    const [claim, hold] = [images[before]?.claims.get(key), images[before]?.holds.get(key)];
    images[before]?.claims.delete(key);
    images[before]?.holds.delete(key);
    const nextClaim = images[home]?.stored.claims.get(key);
    const nextHold = images[home]?.stored.holds.get(key);
    if (nextClaim !== undefined) images[home]?.claims.set(key, nextClaim);
    if (nextHold !== undefined) images[home]?.holds.set(key, nextHold);
    this.#checkKey(before === -1 ? home : before, key, claim, hold, nextClaim, nextHold);
    if (before === -1 || before === home) return;
    this.#evidence.see("I48");
    this.#evidence.see("G7");
    if (claim !== undefined) this.#moved(before, home, claim);
    if (hold === undefined || nextHold === undefined || identity(hold) !== identity(nextHold)) return;
    this.#evidence.check(
      "I48",
      nextHold.granted_by === (hold.granted_by ?? before),
      () => `the hold on ${key} moved from shard ${before}, but says that ${nextHold.granted_by} granted it`,
    );
    this.#evidence.see("a hold moved");
    this.#evidence.see("G6");
  }

  /** Checks that the claims that a transaction ended became past claims, and that nothing else did (K1). */
  #checkKept(
    { name, disk }: Part<object>,
    image: ShardImage,
    before: Pick<ShardImage, "claims" | "holds">,
    mayDelete: boolean,
  ): void {
    const past = disk.readDurable<PastClaimRow>("SELECT * FROM past_claim");
    const { claims } = image;
    const ended = [...before.claims].filter(([key, { epoch }]) => claims.get(key)?.epoch !== epoch);
    const count = image.pastClaims;
    const isSameHistory = image.wentBack === disk.wentBack;
    image.pastClaims = past.length;
    image.wentBack = disk.wentBack;
    // A name that moves takes no past claims with it (G9).
    if (!isSameHistory || mayDelete) return;
    for (const [key, claim] of ended) {
      const hold = before.holds.get(key) ?? rangeOver(image.ranges, claim);
      const row = past.find((each) => rowKey(each) === key && each.epoch === claim.epoch);
      this.#evidence.check(
        "I35",
        row !== undefined && hold !== undefined && isKeptAs(row, claim, hold),
        () => `${name} has ended the claim ${JSON.stringify(claim)}, but keeps ${JSON.stringify(row)}`,
      );
      this.#evidence.see("K1");
    }
    const added = past.length - count;
    this.#evidence.check(
      "I35",
      added === ended.length || (this.#evidence.mayForget && added < ended.length),
      () => `${name} has ended ${ended.length} claims, but keeps ${added} more than before`,
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
  ): void {
    const ranges = this.#evidence.images[shard]?.ranges ?? new Map();
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
      execution.epochs[hold.granted_by ?? shard] === hold.epoch;
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

/** Reads what a shard has stored of its placement and of a growth. */
function readGrowing({ disk }: Part<object>): GrowingShard {
  const rows = disk.readDurable<{ name: string; value: string }>(
    "SELECT name, value FROM meta WHERE name IN ('placement', 'growth_source', 'growth_target')",
  );
  const meta = new Map(rows.map(({ name, value }) => [name, value]));
  const placement = meta.get("placement");
  const source = JSON.parse(meta.get("growth_source") ?? "null") as {
    from: number;
    isFenced: boolean;
    isCleaned: boolean;
  } | null;
  const target = JSON.parse(meta.get("growth_target") ?? "null") as {
    from: number;
    sources: Record<string, { isActive: boolean }>;
  } | null;
  return {
    shards: placement === undefined ? 0 : shardsOf(placement),
    fencedFrom: source?.isFenced === true && !source.isCleaned ? source.from : undefined,
    target:
      target === null
        ? undefined
        : {
            from: target.from,
            active: new Set(
              Object.entries(target.sources).flatMap(([shard, { isActive }]) =>
                isActive ? [Number(shard)] : [],
              ),
            ),
          },
  };
}

const growingText = ({ shards, fencedFrom, target }: GrowingShard): string =>
  JSON.stringify([shards, fencedFrom, target?.from, target && [...target.active]]);

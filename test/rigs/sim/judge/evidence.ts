import type {
  BucketKey,
  ClaimRecord,
  LeaseState,
  Outcome,
} from "../../../../src/coordinator/kernel/messages.ts";
import { shardOf } from "../../../../src/coordinator/kernel/placement.ts";
import type { RangeHoldRow } from "../../../../src/coordinator/capabilities/transfer/range-holds.ts";
import type { ClaimRow, HoldRow } from "../../../../src/coordinator/kernel/shard/rows.ts";
import { shipped } from "../../../support/types.ts";
import type { Coordinator } from "../coordinator.ts";
import { nameKey, type LocalRow } from "../local.ts";
import type { Part } from "../part.ts";
import { Violation, type Invariant } from "../violation.ts";
import { factKey, type Facts, type ShardImage } from "./rows.ts";

/** The source type of the names that cells move to each other (`transferring.ts`). */
const MOVED_SOURCE = shipped.named("source", "RAILS_TABLE_PROJECTS")?.number;

/** What the judge has seen so far. */
export class Evidence {
  /**
   * How often each invariant was checked in a situation where it could fail, and each rule was seen at work.
   */
  readonly seen = new Map<string, number>();
  readonly coordinator: Coordinator;
  /** The cell whose database has a row for a name. */
  readonly inUse = new Map<string, string>();
  readonly facts = new Map<string, Facts>();
  readonly images: ShardImage[] = [];
  /** The number of shards at the start. */
  readonly #firstShards: number;
  /** Leases whose row was pruned, so that their UUIDs may be used again. */
  readonly pruned = new Set<string>();
  readonly everPruned = new Set<string>();
  /** Committed leases that were pruned. */
  readonly forgotten = new Set<string>();
  /** Decisions that an authorized caller requested. */
  readonly requested = new Set<string>();
  /** Cells whose freeze was acknowledged and that were not thawed since. */
  readonly frozen = new Set<string>();
  /** Cells whose draining was acknowledged and that were not made active since. */
  readonly draining = new Set<string>();
  /** Cells that an operator removes. */
  readonly removing = new Set<string>();
  /** Leases that a verification has begun. */
  readonly verified = new Set<string>();
  /** Those of them that an operator began. */
  readonly broughtForward = new Set<string>();
  /** Keys whose revocation was acknowledged. */
  readonly revoked = new Set<string>();
  /** The keys with which each lease was begun. */
  readonly keysOf = new Map<string, Set<string>>();
  readonly released = new Set<string>();
  readonly calledGone = new Set<string>();

  /** Whether shards may drop or erase claims that have ended. */
  mayForget = false;

  /** The rows of a cell's database by name. */
  rowsOf: (cell: string) => ReadonlyMap<string, LocalRow> = () => new Map();

  constructor(coordinator: Coordinator) {
    this.coordinator = coordinator;
    this.#firstShards = coordinator.shards.length;
    this.watchShards();
  }

  /** Begins to watch the shards that are not watched yet. */
  watchShards(): void {
    while (this.images.length < this.coordinator.allShards.length)
      this.images.push({
        version: -1,
        stored: { claims: new Map(), holds: new Map() },
        growing: { shards: 0, fencedFrom: undefined, target: undefined },
        claims: new Map(),
        holds: new Map(),
        ranges: new Map(),
        pastClaims: 0,
        wentBack: 0,
      });
  }

  /** The durable audit entries of a part. A part that is new may not have the table yet. */
  auditEntriesOf({ disk }: Part<object>): number {
    const [table] = disk.readDurable("SELECT 1 FROM sqlite_master WHERE name = 'audit'");
    if (table === undefined) return 0;
    return disk.readDurable<{ n: number }>("SELECT count(*) AS n FROM audit")[0]?.n ?? 0;
  }

  see(what: string): void {
    this.seen.set(what, (this.seen.get(what) ?? 0) + 1);
  }

  check(rule: Invariant, isRight: boolean, message: () => string): void {
    this.see(rule);
    this.require(rule, isRight, message);
  }

  /** A check that is not counted, because the situation rarely allows a failure. */
  require(rule: Invariant, isRight: boolean, message: () => string): void {
    if (!isRight) throw new Violation(rule, message());
  }

  /** The leases that a scan must contain if it begins now. */
  grantedOf(cell: string): string[] {
    return [...this.facts.values()]
      .filter(({ row, ...fact }) => fact.cell === cell && fact.state === "GRANTED" && row.transfer === null)
      .map(({ lease }) => lease);
  }

  factOf(cell: string, lease: string): Facts | undefined {
    return this.facts.get(factKey(cell, lease));
  }

  /** Whether the lease was committed and its outcome was forgotten. */
  wasForgotten(cell: string, lease: string): boolean {
    return this.forgotten.has(factKey(cell, lease));
  }

  wasPruned(cell: string, lease: string): boolean {
    return this.everPruned.has(factKey(cell, lease));
  }

  /**
   * A cell's claims on one shard by name, as they are decided: whatever the shard has not applied yet counts.
   * The text changes whenever a claim changes.
   */
  claimsOf(
    shard: number,
    cell: string,
    sourceType: number,
    bucketTypes: readonly number[],
  ): Map<string, string> {
    const image = this.images[shard];
    const claims = new Map<string, ClaimRow | HoldRow>(image?.claims);
    const texts = new Map([...claims].map(([key, { uuid, epoch }]) => [key, `${uuid}/${epoch}`]));
    for (const [key, hold] of image?.holds ?? []) {
      if (this.stateOf(hold, shard) !== "COMMITTED") continue;
      if (hold.kind === "destroy") claims.delete(key);
      else claims.set(key, hold);
      texts.set(key, `${image?.claims.get(key)?.uuid ?? hold.uuid}/${hold.epoch}`);
    }
    const listed = [...claims].filter(
      ([, row]) =>
        row.cell === cell && row.source_type === sourceType && bucketTypes.includes(row.bucket_type),
    );
    return new Map(listed.map(([key]) => [key, texts.get(key) ?? ""]));
  }

  claimOn({ type, canonical }: BucketKey): ClaimRow | undefined {
    return this.images[this.homeOf({ type, canonical })]?.claims.get(nameKey({ type, canonical }));
  }

  holdOn(key: BucketKey): HoldRow | undefined {
    return this.images[this.homeOf(key)]?.holds.get(nameKey(key));
  }

  /** The shards that serve a name, by what is durable. */
  serversOf(key: BucketKey): number[] {
    return this.images.flatMap(({ growing: { shards, target } }, index) => {
      const isPlaced = shards > 0 && placed(key, shards) === index;
      return isPlaced && (target?.active.has(placed(key, target.from)) ?? true) ? [index] : [];
    });
  }

  /**
   * The shard whose rows about a name count: the one that serves it. While a name is handed over, nobody
   * serves it, and the rows of the shard that has stopped count.
   */
  homeOf(key: BucketKey): number {
    return this.serversOf(key)[0] ?? placed(key, this.#shardsBefore());
  }

  /** The number of shards before the growth that runs. */
  #shardsBefore(): number {
    const fenced = Math.max(0, ...this.images.map(({ growing }) => growing.fencedFrom ?? 0));
    if (fenced > 0) return fenced;
    const counts = this.images.map(({ growing: { shards } }) => shards).filter((shards) => shards > 0);
    return counts.length === 0 ? this.#firstShards : Math.min(...counts);
  }

  /** The state of the lease of a hold, if the lease rests on this execution. */
  stateOf(hold: HoldRow | RangeHoldRow, shard: number): LeaseState | undefined {
    const { cell, lease, incarnation, counter, epoch, granted_by: grantedBy } = hold;
    const fact = this.facts.get(factKey(cell, lease));
    const { execution } = fact ?? {};
    const isIt =
      execution?.incarnation === incarnation &&
      execution.counter === counter &&
      execution.epochs[grantedBy ?? shard] === epoch;
    return isIt ? fact?.state : undefined;
  }

  claims(): ClaimRow[] {
    return this.images.flatMap(({ claims }) => [...claims.values()]);
  }

  /** The claims that rows of the cells must have. Names of declared types and of transfers have none. */
  rowClaims(): ClaimRow[] {
    return this.claims().filter(
      ({ bucket_type: type, source_type: source }) =>
        shipped.numbered("bucket", type) !== undefined && source !== MOVED_SOURCE,
    );
  }

  /** The claims with types that operators have declared. */
  declaredClaims(): ClaimRow[] {
    return this.claims().filter((claim) => shipped.numbered("bucket", claim.bucket_type) === undefined);
  }

  holds(): HoldRow[] {
    return this.images.flatMap(({ holds }) => [...holds.values()]);
  }

  requests(cell: string, lease: string, outcome: Outcome): void {
    this.requested.add(`${factKey(cell, lease)}/${outcome}`);
  }

  /** A lookup returned the hold of a create. */
  showed({ cell, lease, canonical }: ClaimRecord): void {
    const key = factKey(cell, lease ?? "");
    const isGranted = this.facts.get(key)?.execution !== undefined || this.everPruned.has(key);
    this.check("I15", isGranted, () => `${canonical} was returned for lease ${key}, which was never granted`);
  }
}

const placements = new Map<string, number>();

/** The shard of a name, if there are this many. */
function placed({ type, canonical }: BucketKey, shards: number): number {
  const id = `${shards} ${type} ${canonical}`;
  const known = placements.get(id) ?? shardOf(type, canonical, shards);
  placements.set(id, known);
  return known;
}

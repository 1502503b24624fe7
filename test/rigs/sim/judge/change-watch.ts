import type { Change } from "../../../../src/coordinator/capabilities/feed/messages.ts";
import type { Positions } from "../../../../src/users/router/positions.ts";
import {
  loggedChanges,
  type LoggedChange,
} from "../../../../src/coordinator/capabilities/feed/logged-changes.ts";
import type { ClaimRow, HoldRow } from "../../../../src/coordinator/kernel/shard/rows.ts";
import { nameKey } from "../local.ts";
import type { Part } from "../part.ts";
import type { Evidence } from "./evidence.ts";
import { factKey, rowKey } from "./rows.ts";

/** Claims by their UUIDs, each as a text that changes whenever the claim does. */
export type Claims = Map<string, { epoch: number; text: string }>;

/** What is durable in the log of a shard, and the claims that follow from it. */
interface Told {
  version: number;
  wentBack: number;
  /** Of the newest row. */
  position: number;
  claims: Claims;
  holds: ReadonlyMap<string, HoldRow>;
  /** The executions whose grants were told, by `executionOf`. */
  granted: Set<string>;
  /** The executions whose decisions were told. */
  decided: Set<string>;
  /** The claims that transfers have moved, and from which cells. */
  moves: { position: number; uuid: string; from: string | undefined }[];
  /** The claims that have moved to this shard and from it, and that were not told otherwise (G9). */
  arrived: ClaimRow[];
  left: ClaimRow[];
  /** Of all transactions, and of those that changed something. */
  positions: Set<number>;
  changed: number[];
}

/** A claim as a change left it. */
interface ToldClaim {
  shard: number;
  position: number;
  uuid: string;
  epoch: number;
  /** Undefined: the change ended the claim. */
  text: string | undefined;
}

/**
 * Compares the changes in the log of each shard with the claims, holds and leases. It follows the log as a
 * consumer does that never misses a row.
 */
export class ChangeWatch {
  readonly #evidence: Evidence;
  /** Holds that have ended since the last look. */
  readonly #ended: { shard: number; hold: HoldRow }[] = [];
  readonly #told: Told[] = [];
  /** The changes of claims on all shards, those of each shard in order. */
  readonly #claims: ToldClaim[] = [];

  constructor(evidence: Evidence) {
    this.#evidence = evidence;
  }

  /** All claims, as an export has them, and the position of each shard's last change of a claim. */
  exported(): { positions: Positions; claims: Claims } {
    const positions = new Map(this.#claims.map(({ shard, position }) => [shard, position]));
    return { positions, claims: claimsOf(this.#evidence.claims()) };
  }

  /** A cell was told of its changes between two positions (F5). */
  toldToCell(shard: number, cell: string, page: { after: number; through: number; changes: Change[] }): void {
    const { moves } = this.#of(shard);
    const told = new Set(
      page.changes.flatMap(({ event, claim }) => (event === "moved" ? (claim?.uuid ?? []) : [])),
    );
    const missing = moves.find(
      ({ position, uuid, from }) =>
        from === cell && position > page.after && position <= page.through && !told.has(uuid),
    );
    this.#evidence.check(
      "I44",
      missing === undefined,
      () => `cell ${cell} was not told that its claim ${missing?.uuid} has moved`,
    );
    const other = page.changes.find(
      (change) =>
        change.cell !== cell &&
        (change.event !== "moved" ||
          moves.some(
            ({ uuid, from, position }) =>
              uuid === change.claim?.uuid && position === change.position && from !== cell,
          )),
    );
    this.#evidence.check("I44", other === undefined, () => `cell ${cell} was told ${JSON.stringify(other)}`);
    if (page.changes.length > 0) this.#evidence.see("F5");
  }

  /** A consumer was told of everything up to these positions, and has made these claims of it. */
  consumed(positions: Positions, claims: Claims, isComplete: boolean): void {
    for (const [shard, position] of positions)
      this.#evidence.check(
        "I44",
        this.#of(shard).positions.has(position),
        () => `shard ${shard} told changes up to ${position}, which is no durable position`,
      );
    if (!isComplete) return;
    const [has, expected] = [textOf(claims), textOf(this.#claimsAt(positions))];
    this.#evidence.check(
      "I44",
      has === expected,
      () => `at ${JSON.stringify([...positions])} a consumer has the claims ${has} instead of ${expected}`,
    );
    this.#evidence.see("F6");
  }

  /**
   * The claims that follow from all changes up to some positions. The change with the largest epoch counts,
   * wherever the name was then (E1). The end of a claim has the same epoch as the claim.
   */
  #claimsAt(positions: Positions): Claims {
    const last = new Map<string, ToldClaim>();
    for (const told of this.#claims) {
      if (told.position > (positions.get(told.shard) ?? 0)) continue;
      const other = last.get(told.uuid);
      const isLater = other === undefined || told.epoch > other.epoch;
      if (isLater || (told.epoch === other.epoch && told.text === undefined)) last.set(told.uuid, told);
    }
    return new Map(
      [...last].flatMap(([uuid, { epoch, text }]) => (text === undefined ? [] : [[uuid, { epoch, text }]])),
    );
  }

  /** A shard has refused to tell the changes after a position, because its log has dropped some (F4). */
  refused(shard: number, after: number): void {
    const { disk } = this.#evidence.coordinator.shard(shard);
    const kept = new Set(
      disk
        .readDurable<{ position: number }>("SELECT position FROM log WHERE changes <> ''")
        .map(({ position }) => position),
    );
    const isDropped = this.#of(shard).changed.some((position) => position > after && !kept.has(position));
    // The transaction that has dropped them may not be durable yet.
    this.#evidence.check(
      "I44",
      isDropped || disk.pending > 0,
      () => `shard ${shard} has all changes after ${after}, but refuses to tell them`,
    );
  }

  /** A claim has moved, which no shard tells. */
  moved(from: number, to: number, claim: ClaimRow): void {
    this.#evidence.see("G9");
    this.#of(from).left.push(claim);
    this.#of(to).arrived.push(claim);
  }

  /** Must be called when the images of the shards were read. */
  refresh(): void {
    for (const [index, part] of this.#evidence.coordinator.allShards.entries()) {
      const told = this.#of(index);
      if (told.version !== part.disk.version) this.#read(index, part, told);
    }
    for (const { shard, hold } of this.#ended.splice(0)) this.#checkEnded(shard, hold);
  }

  #of(shard: number): Told {
    return (this.#told[shard] ??= {
      version: -1,
      wentBack: 0,
      position: 0,
      claims: new Map(),
      holds: new Map(),
      granted: new Set(),
      decided: new Set(),
      moves: [],
      arrived: [],
      left: [],
      positions: new Set([0]),
      changed: [],
    });
  }

  #read(index: number, { disk }: Part<object>, told: Told): void {
    told.version = disk.version;
    const image = this.#evidence.images[index];
    const hasTables = disk.readDurable("SELECT 1 FROM sqlite_master WHERE name = 'log'").length > 0;
    if (image === undefined || !hasTables) return;
    const { holds: before } = told;
    told.holds = image.holds;
    if (told.wentBack !== disk.wentBack) return this.#startAgain(told, disk.wentBack, index, image.claims);
    for (const row of told.arrived) told.claims.set(row.uuid, claimOf(row));
    told.arrived = [];
    const rows = disk.readDurable<{ position: number; changes: string | null }>(
      "SELECT position, changes FROM log WHERE position > ? ORDER BY position",
      told.position,
    );
    for (const { position, changes } of rows) {
      const open = new Set<string>();
      for (const change of loggedChanges({ text: changes ?? "", position, atMs: 0 })) {
        this.#apply(index, told, change, position);
        if (change.event === "granted") open.add(executionOf(change));
        if (isDecision(change)) open.delete(executionOf(change));
      }
      for (const execution of open)
        this.#evidence.check(
          "I44",
          !told.decided.has(execution),
          () => `shard ${index} told the execution ${execution} as granted after its decision`,
        );
      told.position = position;
      told.positions.add(position);
      if (changes !== null && changes !== "") told.changed.push(position);
    }
    for (const { uuid } of told.left) told.claims.delete(uuid);
    told.left = [];
    const text = textOf(told.claims);
    const claims = textOf(claimsOf(image.claims.values()));
    this.#evidence.check(
      "I44",
      text === claims,
      () => `the changes of shard ${index} give the claims ${text} instead of ${claims}`,
    );
    if (rows.length > 0) this.#evidence.see("F1");
    for (const [key, hold] of before)
      if (image.holds.get(key)?.epoch !== hold.epoch && !this.#isHeldElsewhere(hold))
        this.#ended.push({ shard: index, hold });
  }

  /** A restored file has other rows, and its next instance tells grants again. */
  #startAgain(told: Told, wentBack: number, index: number, claims: ReadonlyMap<string, ClaimRow>): void {
    const { disk } = this.#evidence.coordinator.shard(index);
    told.wentBack = wentBack;
    told.position = disk.readDurable<{ at: number }>("SELECT max(position) AS at FROM log")[0]?.at ?? 0;
    told.claims = claimsOf(claims.values());
    told.granted.clear();
    told.decided.clear();
    told.moves = [];
    told.positions.clear();
  }

  #apply(
    shard: number,
    { claims, granted, decided, moves }: Told,
    change: LoggedChange,
    position: number,
  ): void {
    const { event, cell, lease, epoch, claim } = change;
    const fail = (why: string) => (): string => `shard ${shard} told ${JSON.stringify(change)}, but ${why}`;
    if (claim === undefined) {
      const fact = this.#evidence.facts.get(factKey(cell, lease));
      const isGrant = Object.values(fact?.execution?.epochs ?? {}).includes(epoch);
      this.#evidence.check("I44", isGrant, fail("no lease was granted with this execution"));
      if (event === "granted") return void granted.add(executionOf(change));
      const isRight = fact?.state === (event === "committed" ? "COMMITTED" : "ROLLED_BACK");
      this.#evidence.check("I44", isRight, fail(`the lease is ${fact?.state}`));
      this.#evidence.check("I44", granted.has(executionOf(change)), fail("its grant was not told before"));
      decided.add(executionOf(change));
      this.#evidence.see("F2");
      return;
    }
    const known = claims.get(claim.uuid);
    const text = event === "released" ? undefined : textOfChange(change);
    this.#claims.push({ shard, position, uuid: claim.uuid, epoch, text });
    if (text === undefined) {
      this.#evidence.check("I44", known?.epoch === epoch, fail(`the claim was ${known?.text}`));
      claims.delete(claim.uuid);
      return;
    }
    const isNew = known === undefined;
    if (event === "moved")
      moves.push({ position: change.position, uuid: claim.uuid, from: change.movedFrom });
    if (event === "moved")
      this.#evidence.check("I50", (known?.epoch ?? epoch) < epoch, fail(`the claim was ${known?.text}`));
    this.#evidence.check("I44", isNew === (event === "claimed"), fail(`the claim was ${known?.text}`));
    claims.set(claim.uuid, { epoch, text });
  }

  /** Whether a hold has only moved. */
  #isHeldElsewhere({ bucket_type: type, canonical, lease, epoch }: HoldRow): boolean {
    const hold = this.#evidence.holdOn({ type, canonical });
    return hold?.lease === lease && hold.epoch === epoch;
  }

  /** The shard that has the name by now tells the decision, although it may have got the hold just before. */
  #checkEnded(shard: number, hold: HoldRow): void {
    const { bucket_type: type, canonical, cell, lease, epoch, granted_by } = hold;
    const fact = this.#evidence.facts.get(factKey(cell, lease));
    if (fact?.execution?.epochs[granted_by ?? shard] !== epoch) return;
    const tellers = [shard, this.#evidence.homeOf({ type, canonical })];
    this.#evidence.check(
      "I44",
      tellers.some((teller) => this.#of(teller).decided.has(executionOf(hold))),
      () => `shard ${shard} did not tell that lease ${lease} of cell ${cell} is ${fact.state}`,
    );
  }
}

const isDecision = ({ event }: Change): boolean => event === "committed" || event === "rolled_back";

/** The text of a claim as a consumer gets it. */
export function textOfChange({ cell, epoch, claim }: Change): string {
  const details = claim?.details;
  if (claim === undefined || details === null || details === undefined) return "erased";
  const { canonical, value, subject, source } = details;
  const facts = [value, cell, epoch, subject.type, subject.id, source.type, source.id];
  return `${nameKey({ type: claim.type, canonical })} ${facts.join("/")}`;
}

const claimsOf = (rows: Iterable<ClaimRow>): Claims =>
  new Map([...rows].map((row) => [row.uuid, claimOf(row)]));

function claimOf(row: ClaimRow): { epoch: number; text: string } {
  const facts = [row.value, row.cell, row.epoch, row.subject_type, row.subject_id];
  const text = `${rowKey(row)} ${[...facts, row.source_type, row.source_id].join("/")}`;
  return { epoch: row.epoch, text };
}

/** Epochs of different shards may be the same, and holds move. */
const executionOf = ({ lease, epoch }: { lease: string; epoch: number }): string => `${lease} ${epoch}`;

const textOf = (claims: Claims): string =>
  [...claims.values()]
    .map(({ text }) => text)
    .toSorted()
    .join("; ");

import { decodePayload } from "../../src/core/ledger/payload.ts";
import { msOf } from "../../src/core/ledger/position.ts";
import type {
  BeginRequest,
  ClaimRecord,
  Decision,
  Exchange,
  ExchangeAnswer,
  Inquiry,
  InquiryAnswer,
  LeaseState,
  Op,
  Outcome,
  Prepare,
  Reply,
  SettleAnswer,
} from "../../src/core/messages.ts";
import { shardOf } from "../../src/core/placement.ts";
import { bucketTypeByNumber, sourceTypes, type SourceTypeName } from "../../src/core/registry.ts";
import type { ClaimRow, HoldRow } from "../../src/core/shard/store.ts";
import type { Coordinator } from "./coordinator.ts";
import { nameKey, type LocalChange } from "./local.ts";
import type { Sent, Witness } from "./network.ts";
import type { Instance, Part } from "./part.ts";
import { Violation, type Invariant } from "./violation.ts";

/** What is durable of a lease, and what was seen of it. */
interface Facts {
  cell: string;
  lease: string;
  state: LeaseState;
  /** Of the grant; a fence has none. */
  execution: { incarnation: number; counter: number; epochs: Record<string, number> } | undefined;
  ops: Op[];
  isApplied: boolean;
  seenAtMs: number;
  /** Of the last change. */
  position: number;
  createdPosition: number;
}

interface LedgerRow {
  lease: string;
  decided: 0 | 1;
  state: LeaseState;
  fence: 0 | 1;
  position: number;
  created_position: number;
  incarnation: number;
  counter: number;
  epochs: string | null;
  payload: string | null;
  missing: number;
}

interface ShardImage {
  version: number;
  claims: Map<string, ClaimRow>;
  holds: Map<string, HoldRow>;
}

/** A lease that was granted for so long has outlived every timer. */
const LONG_MS = 120_000;

const attemptOf = (cell: string, { incarnation, counter }: { incarnation: number; counter: number }): string => `${cell}/${incarnation}.${counter}`;
const factKey = (cell: string, lease: string): string => `${cell}/${lease}`;
const rowKey = ({ bucket_type, canonical }: ClaimRow | HoldRow): string => `${bucketTypeByNumber(bucket_type)}:${canonical}`;

/** Sees everything: what is durable everywhere, every message, every local transaction. Throws what is wrong the moment it is. */
export class Judge implements Pick<Witness, "sent" | "answered"> {
  /** How often each invariant was put to a test that it could have failed, and each rule was seen at work. */
  readonly seen = new Map<string, number>();
  /** Name → cell whose database has a row for it. */
  readonly inUse = new Map<string, string>();
  readonly facts = new Map<string, Facts>();
  /** Leases whose row was pruned: their UUIDs may be used again. */
  readonly pruned = new Set<string>();
  /** Decisions that somebody who may has asked for. */
  readonly requested = new Set<string>();
  /** Cells whose freeze was acknowledged and not lifted. */
  readonly frozen = new Set<string>();
  /** Keys whose revocation was acknowledged. */
  readonly revoked = new Set<string>();
  /** Keys that began a lease. */
  readonly keysOf = new Map<string, Set<string>>();
  /** Whether the fleet record has a lease in this state. */
  isRecorded: (cell: string, lease: string, state: LeaseState) => boolean = () => false;
  readonly #everPruned = new Set<string>();
  readonly #forgotten = new Set<string>();
  readonly #unpulled = new Set<string>();
  readonly #coordinator: Coordinator;
  readonly #images: ShardImage[];
  readonly #ledgerVersions = new Map<string, number>();
  readonly #attempts = new Map<string, string>();
  readonly #prepared = new Set<string>();
  readonly #over = new Set<string>();
  readonly #given = new Set<string>();
  readonly #positions = new Map<string, number>();
  readonly #epochs = new Map<string, number>();
  /** Begins under way, by lease: which attempt they are at, and which shards it waits for. */
  readonly #asking = new Map<
    string,
    { attempt: string; instance: number; isFirst: boolean; waiting: Set<number>; last: number; wasRefused: boolean }
  >();

  constructor(coordinator: Coordinator) {
    this.#coordinator = coordinator;
    this.#images = coordinator.shards.map(() => ({ version: -1, claims: new Map(), holds: new Map() }));
  }

  see(what: string): void {
    this.seen.set(what, (this.seen.get(what) ?? 0) + 1);
  }

  check(rule: Invariant, isRight: boolean, message: () => string): void {
    this.see(rule);
    if (!isRight) throw new Violation(rule, message());
  }

  /** After every step. */
  observe(): void {
    this.#refresh();
    for (const [cell, part] of this.#coordinator.ledgers)
      this.#checkWakeUp(part, () => [...this.facts.values()].some((fact) => fact.cell === cell && fact.state !== "GRANTED" && !fact.isApplied));
    for (const [index, part] of this.#coordinator.shards.entries()) this.#checkWakeUp(part, () => (this.#images[index]?.holds.size ?? 0) > 0);
  }

  /** Reads whatever became durable since the last look. */
  #refresh(): void {
    for (const [cell, part] of this.#coordinator.ledgers) if (this.#ledgerVersions.get(cell) !== part.disk.version) this.#readLedger(cell, part);
    for (const [index, part] of this.#coordinator.shards.entries()) {
      const image = this.#images[index];
      if (image !== undefined && image.version !== part.disk.version) this.#readShard(index, part, image);
    }
  }

  /** What a scan of a cell's leases must show if it begins now. */
  grantedOf(cell: string): string[] {
    return [...this.facts.values()].filter((fact) => fact.cell === cell && fact.state === "GRANTED").map(({ lease }) => lease);
  }

  factOf(cell: string, lease: string): Facts | undefined {
    return this.facts.get(factKey(cell, lease));
  }

  /** The lease was committed, and its outcome is forgotten by now. */
  wasForgotten(cell: string, lease: string): boolean {
    return this.#forgotten.has(factKey(cell, lease));
  }

  /** Forgotten before the fleet record had it, because no cron came for too long. */
  wasUnpulled(cell: string, lease: string): boolean {
    return this.#unpulled.has(factKey(cell, lease));
  }

  wasPruned(cell: string, lease: string): boolean {
    return this.#everPruned.has(factKey(cell, lease));
  }

  /** Claims of one shard by name; the same object as long as a claim does not change. */
  claimsOf(shard: number, cell: string, sourceType: SourceTypeName): Map<string, string> {
    const claims = [...(this.#images[shard]?.claims ?? [])].filter(
      ([, row]) => row.cell === cell && row.source_type === sourceTypes[sourceType].number,
    );
    return new Map(claims.map(([key, row]) => [key, `${row.uuid}/${row.epoch}`]));
  }

  /** A lookup has shown the hold of a create. */
  showed({ cell, lease, canonical }: ClaimRecord): void {
    const key = factKey(cell, lease ?? "");
    const isGranted = this.facts.get(key)?.execution !== undefined || this.#everPruned.has(key);
    this.check("I15", isGranted, () => `${canonical} was shown for lease ${key}, which was never granted`);
  }

  claims(): ClaimRow[] {
    return this.#images.flatMap(({ claims }) => [...claims.values()]);
  }

  holds(): HoldRow[] {
    return this.#images.flatMap(({ holds }) => [...holds.values()]);
  }

  requests(cell: string, lease: string, outcome: Outcome): void {
    this.requested.add(`${factKey(cell, lease)}/${outcome}`);
  }

  /** A local transaction of a cell has committed. */
  saved(cell: string, change: LocalChange): void {
    this.#refresh();
    for (const name of change.removes) this.inUse.delete(nameKey(name));
    for (const row of change.puts) {
      const key = nameKey(row);
      const owner = this.inUse.get(key);
      this.check("I1", owner === undefined || owner === cell, () => `${key} is in use by cell ${owner} and now by cell ${cell}`);
      this.inUse.set(key, cell);
      this.#checkProtected(key);
    }
  }

  sent({ from, to, method, message }: Sent): void {
    this.#refresh();
    if (method === "begin") {
      const { lease, caller } = message as BeginRequest;
      const key = factKey(to.slice("ledger ".length), lease);
      this.keysOf.set(key, (this.keysOf.get(key) ?? new Set()).add(caller.keyId));
    }
    if (method !== "exchange") return;
    const { decisions, prepares } = message as Exchange;
    if (new Set([...decisions, ...prepares].map(({ lease }) => lease)).size > 1) this.see("N1");
    for (const decision of decisions) this.#sentDecision(decision);
    for (const prepare of prepares) this.#sentPrepare(from as Instance<unknown>, prepare);
  }

  answered({ from, to, method, message }: Sent, reply: Reply<unknown>): void {
    this.#refresh();
    if (method === "begin") this.#asking.delete(factKey(to.slice("ledger ".length), (message as BeginRequest).lease));
    if (!reply.ok) {
      if (reply.refusal.reason === "MESSAGE_VERSION") this.see("M5");
      if (reply.refusal.reason === "PLACEMENT_MISMATCH") this.see("P1");
      return;
    }
    if (method === "exchange") this.#answeredExchange(message as Exchange, reply.value as ExchangeAnswer);
    if (method === "inquire") this.#answeredInquiry(to, message as Inquiry, reply.value as InquiryAnswer);
    if (method === "settle") for (const state of (reply.value as SettleAnswer).states) this.see(`settled ${state}`);
    if (method === "confirm") this.see(`confirmed ${from.name}`);
  }

  #sentDecision({ cell, lease, outcome, epoch, ...attempt }: Decision): void {
    const fact = this.facts.get(factKey(cell, lease));
    if (epoch !== null) {
      const isDurable = fact?.state === outcome || this.pruned.has(factKey(cell, lease));
      this.check("I7", isDurable, () => `cell ${cell} tells ${outcome} of lease ${lease}, but its row says ${fact?.state ?? "nothing"}`);
      this.see("C2");
      return;
    }
    const isGranted = fact?.execution?.incarnation === attempt.incarnation && fact.execution.counter === attempt.counter;
    this.check("I7", !isGranted, () => `cell ${cell} releases attempt ${attemptOf(cell, attempt)} of lease ${lease}, which is granted`);
    this.#over.add(attemptOf(cell, attempt));
    this.see("B6");
  }

  #sentPrepare(from: Instance<unknown>, { cell, lease, ops, ...attempt }: Prepare): void {
    const name = attemptOf(cell, attempt);
    const user = `${lease} by instance ${from.serial}`;
    const before = this.#attempts.get(name);
    this.check("I8", before === undefined || before === user, () => `attempt ${name} is of lease ${lease}, and was of lease ${before}`);
    this.#attempts.set(name, user);
    const place = `${name}@${ops[0]?.shard}`;
    this.check("I8", !this.#prepared.has(place), () => `the prepare of attempt ${name} was sent to shard ${ops[0]?.shard} twice`);
    this.#prepared.add(place);
    this.see("B3");
    this.#checkOrder(factKey(cell, lease), name, from.serial, ops[0]?.shard ?? 0);
  }

  /** The first attempt of a begin asks all shards at once; a later one asks the next only after the last has said yes (rule B9). */
  #checkOrder(key: string, attempt: string, instance: number, shard: number): void {
    const before = this.#asking.get(key);
    const isFirst = before === undefined || before.instance !== instance || (before.isFirst && before.attempt === attempt);
    const waiting = before?.attempt === attempt ? before.waiting : new Set<number>();
    if (!isFirst)
      this.check("I8", waiting.size === 0, () => `attempt ${attempt} of lease ${key} asks shard ${shard} before the last one has answered`);
    const isSame = before?.attempt === attempt;
    if (!isFirst && isSame) {
      this.check("I8", shard > before.last, () => `attempt ${attempt} of lease ${key} asks shard ${shard} after shard ${before.last}`);
      this.check("I8", !before.wasRefused, () => `attempt ${attempt} of lease ${key} asks shard ${shard} after it was refused`);
      this.see("B9");
    }
    this.#asking.set(key, { attempt, instance, isFirst, waiting: waiting.add(shard), last: shard, wasRefused: isSame && before.wasRefused });
  }

  #answeredExchange({ prepares }: Exchange, answer: ExchangeAnswer): void {
    for (const [index, { cell, lease, ops, ...attempt }] of prepares.entries()) {
      const asking = this.#asking.get(factKey(cell, lease));
      // A second copy is answered too, and the first answer counts.
      const isFirst = asking?.attempt === attemptOf(cell, attempt) && asking.waiting.delete(ops[0]?.shard ?? 0);
      if (isFirst) asking.wasRefused ||= !(answer.prepares[index]?.granted ?? false);
    }
    const kinds = new Set(answer.prepares.map(({ granted }) => granted));
    if (kinds.has(false)) this.see("B4");
    if (kinds.size > 1 && new Set(prepares.map(({ lease }) => lease)).size > 1) this.see("N2");
  }

  #answeredInquiry(to: string, { shard, questions }: Inquiry, { verdicts }: InquiryAnswer): void {
    const cell = to.slice("ledger ".length);
    for (const [index, question] of questions.entries()) {
      const verdict = verdicts[index];
      const name = `attempt ${attemptOf(cell, question)} of lease ${question.lease} of cell ${cell}`;
      const execution = `${attemptOf(cell, question)}@${shard}#${question.epoch}`;
      this.see(`verdict ${verdict}`);
      this.see("B8");
      const isStillHeld = [...(this.#images[shard]?.holds.values() ?? [])].some((hold) => hold.epoch === question.epoch);
      if (!isStillHeld) this.see("M1");
      const fact = this.facts.get(factKey(cell, question.lease));
      const isIt = fact?.execution?.incarnation === question.incarnation && fact.execution.counter === question.counter;
      const isThis = isIt && fact.execution?.epochs[shard] === question.epoch;
      switch (verdict) {
        case "gone":
          this.#given.add(execution);
          this.check("I9", !isThis || (fact.state !== "GRANTED" && fact.isApplied), () => `${name} is ${fact?.state} and was called gone`);
          break;
        case "granted":
          this.check("I9", isThis || this.pruned.has(factKey(cell, question.lease)), () => `${name} was called granted, and no row says so`);
          break;
        case "committed":
        case "rolled_back": {
          const state = verdict === "committed" ? "COMMITTED" : "ROLLED_BACK";
          this.check("I9", isIt && fact.state === state, () => `${name} was called ${verdict}, and its row says ${fact?.state ?? "nothing"}`);
          break;
        }
        default:
      }
    }
  }

  #readLedger(cell: string, part: Part<object>): void {
    this.#ledgerVersions.set(cell, part.disk.version);
    const hasTable = part.disk.readDurable("SELECT 1 FROM sqlite_master WHERE name = 'lease'").length > 0;
    if (!hasTable) return;
    const rows = part.disk.readDurable<LedgerRow>(
      "SELECT lease, decided, state, fence, position, created_position, incarnation, counter, epochs, payload, missing FROM lease",
    );
    this.#checkPositions(cell, rows);
    const present = new Set<string>();
    for (const row of rows) {
      present.add(factKey(cell, row.lease));
      this.#readLease(cell, row);
    }
    for (const [key, fact] of this.facts) if (fact.cell === cell && !present.has(key)) this.#vanished(key, fact);
    const outstanding = rows.filter(({ decided }) => decided === 0).length;
    const { outstandingLeases } = this.#coordinator.limits;
    this.check(
      "I16",
      outstanding <= outstandingLeases,
      () => `cell ${cell} has ${outstanding} leases outstanding, and may have ${outstandingLeases}`,
    );
  }

  /** Each change of a lease of a cell comes behind all before, whatever its ledger's clock does. */
  #checkPositions(cell: string, rows: readonly LedgerRow[]): void {
    const last = this.#positions.get(cell) ?? 0;
    const changed = rows.filter((row) => this.facts.get(factKey(cell, row.lease))?.position !== row.position).map(({ position }) => position);
    const isGrowing = changed.every((position) => position > last) && new Set(changed).size === changed.length;
    this.check("I12", isGrowing, () => `a change of a lease of cell ${cell} has a position that is not behind all others`);
    this.#positions.set(cell, Math.max(last, ...changed));
  }

  #readLease(cell: string, row: LedgerRow): void {
    const key = factKey(cell, row.lease);
    const before = this.facts.get(key);
    const isApplied = row.payload === null;
    // Pruned, and then fenced, between two looks.
    if (before?.execution !== undefined && row.fence === 1) this.#vanished(key, before);
    if (before === undefined || !this.facts.has(key)) {
      const fact = { ...factOf(cell, row), seenAtMs: this.#coordinator.nowMs() };
      this.facts.set(key, fact);
      this.pruned.delete(key);
      if (row.fence === 0) this.#granted(fact, row.missing);
      else this.see("C7");
      if (fact.state !== "GRANTED") this.#decided(fact);
      return;
    }
    if (before.state !== row.state) {
      this.check("I6", before.state === "GRANTED", () => `lease ${key} was ${before.state} and is ${row.state}`);
      before.state = row.state;
      before.position = row.position;
      this.check("I6", row.position > before.createdPosition, () => `lease ${key} was decided at a position before its grant's`);
      this.#decided(before);
    }
    if (isApplied && !before.isApplied) this.#applied(before);
    before.isApplied = isApplied;
  }

  /** The grant is durable: everything it is for must be held, now and until it is decided. */
  #granted(fact: Facts, missing: number): void {
    const { cell, lease, execution } = fact;
    this.see("B5");
    if (execution === undefined) throw new Violation("I4", `lease ${lease} of cell ${cell} is granted without an attempt`);
    const attempt = attemptOf(cell, execution);
    this.check("I7", !this.#over.has(attempt), () => `attempt ${attempt} of lease ${lease} is granted after it was released`);
    const keys = this.keysOf.get(factKey(cell, lease)) ?? new Set();
    this.check(
      "I17",
      [...keys].some((key) => !this.revoked.has(key)),
      () => `lease ${lease} is granted to revoked keys only: ${[...keys].join(" ")}`,
    );
    this.check("I17", !this.frozen.has(cell), () => `lease ${lease} is granted to cell ${cell}, whose freeze was acknowledged`);
    let absent = 0;
    for (const op of fact.ops) {
      const epoch = execution.epochs[op.shard];
      const hold = this.#images[op.shard]?.holds.get(nameKey(op));
      const isHeld = hold !== undefined && isHoldOf(hold, fact, op);
      if (!isHeld && op.kind === "destroy" && missing > 0) absent += 1;
      else this.check("I4", isHeld, () => `lease ${lease} of cell ${cell} is granted, but does not hold ${nameKey(op)}`);
      const given = `${attempt}@${op.shard}#${epoch}`;
      this.check("I9", !this.#given.has(given), () => `attempt ${attempt} of lease ${lease} is granted after it was called gone`);
    }
    this.check("I4", absent <= missing, () => `lease ${lease} of cell ${cell} lacks ${absent} of its destroys, and knows of ${missing}`);
  }

  #decided(fact: Facts): void {
    this.see("C1");
    if (this.#coordinator.nowMs() - fact.seenAtMs > LONG_MS) this.see("C5");
    const { cell, lease, state } = fact;
    this.check(
      "I6",
      this.requested.has(`${factKey(cell, lease)}/${state}`),
      () => `lease ${lease} of cell ${cell} is ${state}, and nobody asked for it`,
    );
  }

  /** The ledger says that every shard has done it. */
  #applied(fact: Facts): void {
    for (const op of fact.ops) {
      const hold = this.#images[op.shard]?.holds.get(nameKey(op));
      const isHeld = hold !== undefined && isHoldOf(hold, fact, op);
      this.check("I5", !isHeld, () => `lease ${fact.lease} counts as applied, but still holds ${nameKey(op)}`);
    }
  }

  #vanished(key: string, fact: Facts): void {
    this.check("I6", fact.state !== "GRANTED", () => `lease ${key} was granted, and its row is gone`);
    this.check("I5", fact.isApplied, () => `lease ${key} was forgotten before it was applied`);
    const { outcomeRetentionS, outcomeMaxS } = this.#coordinator.limits;
    const ageS = (this.#coordinator.ledger(fact.cell).nowMs() - msOf(fact.position)) / 1_000;
    this.check("I6", ageS >= outcomeRetentionS - 1, () => `the outcome of lease ${key} was forgotten after ${ageS} s`);
    const isPulled = this.isRecorded(fact.cell, fact.lease, fact.state);
    if (!isPulled) this.#unpulled.add(key);
    const isSafe = ageS >= outcomeMaxS - 1 || isPulled;
    this.check("I13", isSafe, () => `the outcome of lease ${key} was forgotten before the fleet record had it`);
    this.see("S1");
    this.facts.delete(key);
    this.pruned.add(key);
    this.#everPruned.add(key);
    if (fact.state === "COMMITTED") this.#forgotten.add(key);
  }

  #readShard(index: number, part: Part<object>, image: ShardImage): void {
    image.version = part.disk.version;
    const hasTables = part.disk.readDurable("SELECT 1 FROM sqlite_master WHERE name = 'hold'").length > 0;
    if (!hasTables) return;
    const claims = new Map(part.disk.readDurable<ClaimRow>("SELECT * FROM claim").map((row) => [rowKey(row), row]));
    const holds = new Map(part.disk.readDurable<HoldRow>("SELECT * FROM hold").map((row) => [rowKey(row), row]));
    const before = { claims: image.claims, holds: image.holds };
    image.claims = claims;
    image.holds = holds;
    for (const key of new Set([...before.claims.keys(), ...before.holds.keys(), ...claims.keys(), ...holds.keys()])) {
      this.#checkPlace(index, key);
      this.#checkKey(index, key, before.claims.get(key), before.holds.get(key), claims.get(key), holds.get(key));
      this.#checkProtected(key);
    }
  }

  #checkPlace(index: number, key: string): void {
    const [type, canonical] = [key.slice(0, key.indexOf(":")), key.slice(key.indexOf(":") + 1)];
    const home = shardOf(type as "ROUTES", canonical, this.#coordinator.shards.length);
    this.check("I1", home === index, () => `${key} is on shard ${index} and belongs to shard ${home}`);
  }

  /** One bucket, before and after a transaction of its shard. */
  #checkKey(
    shard: number,
    key: string,
    claim: ClaimRow | undefined,
    hold: HoldRow | undefined,
    nextClaim: ClaimRow | undefined,
    nextHold: HoldRow | undefined,
  ): void {
    const isSameHold = hold !== undefined && nextHold !== undefined && identity(hold) === identity(nextHold);
    const isSameClaim = JSON.stringify(claim) === JSON.stringify(nextClaim);
    if (hold !== undefined && !isSameHold) this.#holdEnded(shard, key, hold, claim, nextClaim);
    else this.check("I2", isSameClaim, () => `the claim on ${key} changed without a hold`);
    if (nextHold === undefined || isSameHold) return;
    const mayTouch = nextHold.kind === "create" ? nextClaim === undefined : nextClaim?.cell === nextHold.cell;
    this.check("I3", mayTouch, () => `cell ${nextHold.cell} holds ${key} for ${nextHold.kind}, whose owner is ${nextClaim?.cell ?? "nobody"}`);
    const last = this.#epochs.get(key) ?? 0;
    this.check("I2", nextHold.epoch > last, () => `${key} is held with epoch ${nextHold.epoch}, after ${last}`);
    if (last > 0) this.see("E1");
    this.#epochs.set(key, nextHold.epoch);
  }

  /** A hold may end when its lease is decided, or was never granted; and the claim is then what the outcome says. */
  #holdEnded(shard: number, key: string, hold: HoldRow, claim: ClaimRow | undefined, nextClaim: ClaimRow | undefined): void {
    const fact = this.facts.get(factKey(hold.cell, hold.lease));
    const { execution } = fact ?? {};
    const isGrant =
      execution !== undefined &&
      execution.incarnation === hold.incarnation &&
      execution.counter === hold.counter &&
      execution.epochs[shard] === hold.epoch;
    this.check(
      "I4",
      !isGrant || fact?.state !== "GRANTED",
      () => `the hold of the granted lease ${hold.lease} of cell ${hold.cell} on ${key} is gone`,
    );
    const isCommitted = isGrant && fact?.state === "COMMITTED";
    const isRight = isCommitted ? isCommittedAs(hold, nextClaim) : JSON.stringify(claim) === JSON.stringify(nextClaim);
    this.check("I5", isRight, () => {
      const outcome = isCommitted ? "committed" : "not committed";
      return `the ${hold.kind} of ${key} by lease ${hold.lease} of cell ${hold.cell} was ${outcome}, but the claim is of ${nextClaim?.cell ?? "nobody"}`;
    });
    if (!isGrant) this.see("B7");
  }

  /** A name that a cell has a row for is its own. */
  #checkProtected(key: string): void {
    const cell = this.inUse.get(key);
    if (cell === undefined) return;
    for (const { claims, holds } of this.#images) {
      if (claims.get(key)?.cell === cell) return this.see("I5");
      const hold = holds.get(key);
      const fact = hold === undefined ? undefined : this.facts.get(factKey(hold.cell, hold.lease));
      if (hold?.kind === "create" && hold.cell === cell && fact !== undefined && fact.state !== "ROLLED_BACK") return this.see("I5");
    }
    throw new Violation("I5", `cell ${cell} uses ${key}, which is not claimed for it`);
  }

  #checkWakeUp(part: Part<object>, hasWork: () => boolean): void {
    // What is on its way to the disk may be the end of that work.
    if (part.current?.isAdmitted !== true || part.isAwaited || (part.alarmLost && !part.isLossKnown) || part.disk.pending > 0) return;
    this.check("I11", !hasWork(), () => `${part.name} has unfinished work and no alarm`);
  }
}

function factOf(cell: string, row: LedgerRow): Omit<Facts, "seenAtMs"> {
  const { lease, state, incarnation, counter, position, created_position, fence } = row;
  const epochs = JSON.parse(row.epochs ?? "{}") as Record<string, number>;
  return {
    cell,
    lease,
    state,
    execution: fence === 1 ? undefined : { incarnation, counter, epochs },
    ops: row.payload === null ? [] : decodePayload(row.payload),
    isApplied: row.payload === null,
    position,
    createdPosition: created_position,
  };
}

const isHoldOf = (hold: HoldRow, { cell, lease, execution }: Facts, op: Op): boolean =>
  hold.cell === cell &&
  hold.lease === lease &&
  hold.kind === op.kind &&
  hold.incarnation === execution?.incarnation &&
  hold.counter === execution.counter &&
  hold.epoch === execution.epochs[op.shard];

const identity = ({ cell, lease, incarnation, counter, epoch }: HoldRow): string => `${cell}/${lease}/${incarnation}.${counter}/${epoch}`;

function isCommittedAs(hold: HoldRow, claim: ClaimRow | undefined): boolean {
  if (hold.kind === "destroy") return claim === undefined;
  return (
    claim !== undefined &&
    claim.cell === hold.cell &&
    claim.epoch === hold.epoch &&
    claim.value === hold.value &&
    claim.source_id === hold.source_id &&
    claim.subject_id === hold.subject_id
  );
}

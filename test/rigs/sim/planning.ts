import { ChangesSince } from "../../../src/cli/parts/plan/changes-since.ts";
import {
  isForgetful,
  weigh,
  type Evidence,
  type Finding,
  type Findings,
  type LoggedChanges,
} from "../../../src/cli/parts/plan/evidence.ts";
import { LeftHistory } from "../../../src/cli/parts/plan/history.ts";
import { Names } from "../../../src/cli/parts/plan/names.ts";
import { lineOf, newHeader, type PlanLine } from "../../../src/cli/parts/plan/plan-file.ts";
import { PlanRun, type Done } from "../../../src/cli/parts/plan/plan-run.ts";
import { CommandError } from "../../../src/cli/framework/command-error.ts";
import type { Claim } from "../../../src/cli/backup/changed-claims.ts";
import { isLeaseholdError } from "../../../src/client/errors.ts";
import type { HistoryPoint } from "../../../src/client/api-types.ts";
import type { Op, PartStatus, Reply } from "../../../src/core/messages.ts";
import type { ClaimRow } from "../../../src/core/shard/rows.ts";
import { timeOf } from "../../../src/http/answers.ts";
import { bucketType, shipped } from "../../support/types.ts";
import type { Cell } from "./cell.ts";
import type { LocalRow } from "./local.ts";
import { read, type Made } from "./made-leases.ts";
import type { Part } from "./part.ts";
import { apiChanges, listChanges, planClient, planIo } from "./plan-client.ts";
import type { Random } from "./random.ts";
import { Replanning } from "./replanning.ts";
import type { Simulation } from "./simulation.ts";

// In some runs, an operator records the change feed before shards go back in time. Once a shard has accepted
// its loss, the operator plans what to do about each name (J1, J2, J4). What is not certain is decided by the
// cells' rows. Then the operator carries out the plan (J3).

const NAMES = ["a", "b", "c", "d", "e", "f", "g"].map((letter) => `plan-${letter}`);
const PASS_STEPS = 20_000;
/** Longer than a decision takes to reach its shard. */
const DELIVERED_MS = 1_000;
const PAGE_SIZES = [1, 2, 4, 100, 100];

/** The claims of a shard at some point, by their names. */
type Claims = ReadonlyMap<string, Claim>;

/** What is recorded of a shard. */
interface Recorded {
  /** The end of the last page. Undefined: the consumer must start again. */
  position: number | undefined;
  pages: LoggedChanges[];
  backup: Evidence["backup"];
  /** The claims at some points, until the shard goes back. */
  truths: Map<string, Claims>;
}

/** A granted lease that is not decided yet. */
interface OpenLease {
  cell: Cell;
  lease: string;
  row: LocalRow;
  isRelease: boolean;
}

type NoteMessage = (cell: Cell, shard: number) => void;

export class Planning {
  readonly #simulation: Simulation;
  readonly #random: Random;
  readonly #names: Names;
  readonly #noteMessage: NoteMessage;
  readonly #recorded: Recorded[];
  /** What the cells have saved: by name, and then by cell. */
  readonly #rows = new Map<string, Map<Cell, LocalRow>>();
  /** Names of which nobody knows what the cells have, because an answer was lost. */
  readonly #unsure = new Set<string>();
  readonly #open: OpenLease[] = [];
  /** Names of leases that were committed after their hold was lost. Only their cells know it (J4). */
  readonly #lostCommits = new Set<string>();
  #hasGoneBack = false;
  /** The cells that change names now. */
  #active: readonly Cell[];
  /** The cells that change what the shards lose. If others change names afterwards, a shard may go on. */
  readonly #losers: readonly Cell[];
  /** Whether only shards go back. */
  readonly isOfShards: boolean;
  /** Whether the plan is made at once, before shards ask about old holds. */
  readonly isPrompt: boolean;

  /** @param noteMessage is told of each message of a ledger to a shard about a lease */
  constructor(simulation: Simulation, noteMessage: NoteMessage) {
    this.#simulation = simulation;
    this.#random = simulation.faults.stream("planning");
    this.#names = new Names(shipped, simulation.coordinator.shards.length);
    this.#noteMessage = noteMessage;
    this.#active = simulation.cells;
    this.#losers = this.#random.chance(0.5) ? [this.#random.pick(simulation.cells)] : simulation.cells;
    this.isOfShards = this.#random.chance(0.8);
    this.isPrompt = this.#random.chance(0.6);
    this.#recorded = simulation.coordinator.shards.map(() => ({
      position: undefined,
      pages: [],
      backup: undefined,
      truths: new Map(),
    }));
  }

  /** Cells change some names, and the operator sometimes records what the shards have told. */
  async go(rounds: number): Promise<void> {
    for (let round = 0; round < rounds; round += 1) {
      await this.#change(this.#random.pick(NAMES));
      await this.#simulation.pass(DELIVERED_MS, PASS_STEPS);
      await this.record(0.8);
    }
  }

  /** @param chance how likely it is that a shard is read */
  async record(chance: number): Promise<void> {
    for (const index of this.#recorded.keys())
      if (this.#random.chance(chance)) await this.#read(index);
      else this.#keepTruth(index);
  }

  /** From now on, the shards will lose what is changed. Returns the cells that change something. */
  losesChanges(): Cell[] {
    this.#active = this.#losers;
    return [...this.#losers];
  }

  goesBack(): void {
    for (const index of this.#recorded.keys()) this.#keepTruth(index);
    this.#hasGoneBack = true;
    const { cells } = this.#simulation;
    const others = cells.filter((cell) => !this.#losers.includes(cell));
    this.#active = others.length > 0 ? others : cells;
  }

  /** A cell creates, replaces or destroys a name, as its rows say. */
  async #change(canonical: string): Promise<void> {
    if (this.#open.some(({ row }) => row.canonical === canonical)) return;
    const owner = this.#active.find((each) => this.#rows.get(canonical)?.has(each) === true);
    const cell = owner !== undefined && this.#random.chance(0.8) ? owner : this.#random.pick(this.#active);
    const isOwner = this.#rows.get(canonical)?.has(cell) === true;
    const isRelease = isOwner && this.#random.chance(0.5);
    const row = rowOf(canonical, String(this.#random.between(1, 999_999)));
    const list = !isOwner ? "creates" : isRelease ? "destroys" : "replaces";
    const ops = cell.opsOf({ creates: [], destroys: [], replaces: [], [list]: [row] });
    const open = { cell, lease: this.#random.uuid(), row, isRelease };
    const begun = await this.#begin(open, ops);
    if (begun === "refused") return;
    if (begun === "unknown") return void this.#unsure.add(canonical);
    this.#noteMessage(cell, this.#simulation.shardOf(row));
    if (this.#random.chance(this.#hasGoneBack ? 0.2 : 0.3)) this.#open.push(open);
    else await this.#commit(open);
  }

  async #begin({ cell, lease }: OpenLease, ops: Op[]): Promise<"done" | "refused" | "unknown"> {
    const { api, caller, id } = cell;
    if (!this.#hasGoneBack) {
      const batch = { lease, ops, allowMissing: false };
      const { kind } = await this.#simulation.runUntil(api.begin(id, caller, batch));
      return kind === "ok" ? "done" : kind;
    }
    const batch = { caller, lease, ops, allowMissing: false, payloadHash: lease };
    const begun = await this.#send(this.#simulation.coordinator.ledger(id), "begin", batch);
    if (begun?.ok === true) return "done";
    if (begun?.refusal.reason === "HISTORY_LOST") return "refused";
    return begun === undefined || begun.refusal.code === "UNAVAILABLE" ? "unknown" : "refused";
  }

  /** The cell saves its rows, and commits the lease. */
  async #commit({ cell, lease, row, isRelease }: OpenLease): Promise<void> {
    const shard = this.#simulation.coordinator.shard(this.#simulation.shardOf(row));
    if (read(shard, "hold", "lease = ?", lease).length === 0) this.#lostCommits.add(row.canonical);
    const owners = this.#rows.get(row.canonical) ?? new Map<Cell, LocalRow>();
    this.#rows.set(row.canonical, owners);
    if (isRelease) owners.delete(cell);
    else owners.set(cell, row);
    const { api, caller, id } = cell;
    const ledger = this.#simulation.coordinator.ledger(id);
    const isDone = this.#hasGoneBack
      ? (await this.#send(ledger, "decide", { caller, lease, outcome: "COMMITTED" }))?.ok === true
      : (await this.#simulation.runUntil(api.decide(id, caller, lease, "COMMITTED"))).kind === "ok";
    if (!isDone) this.#unsure.add(row.canonical);
  }

  /** Commits some of the leases that were open when the shards went back. */
  async #commitOpen(chance: number): Promise<void> {
    for (const open of this.#open.splice(0))
      if (this.#random.chance(chance)) await this.#commit(open);
      else this.#open.push(open);
  }

  /** Reads pages of the change feed, and sometimes makes a backup. */
  async #read(index: number): Promise<void> {
    const recorded = this.#of(index);
    for (let pages = 0; pages < 6; pages += 1) {
      const { position = null } = recorded;
      const limit = this.#random.pick(PAGE_SIZES);
      const reply = await this.#simulation.runUntil(listChanges(this.#simulation, index, position, limit));
      if (reply?.ok !== true) {
        // A shard that went back may not have the position (F4).
        if (reply?.refusal.reason === "CHANGES_PRUNED" || this.#random.chance(0.5))
          recorded.position = undefined;
        break;
      }
      const { after, through, incarnations, hasMore } = reply.value;
      const [first, last] = incarnations;
      // Some pages of the record are lost, so that changes are missing (J1).
      const isLost = this.#simulation.faults.stream("recorded pages").chance(0.1);
      if (position !== null && !isLost)
        recorded.pages.push({
          after: { incarnation: first, position: after },
          through: { incarnation: last, position: through },
          changes: apiChanges(index, reply.value),
        });
      recorded.position = through;
      if (!hasMore) break;
    }
    this.#keepTruth(index);
    if (this.#random.chance(0.15))
      recorded.backup = { point: this.#pointOf(index), claims: this.#claimsOf(index) };
  }

  #keepTruth(index: number): void {
    if (this.#hasGoneBack) return;
    this.#of(index).truths.set(keyOfPoint(this.#pointOf(index)), this.#byName(this.#claimsOf(index)));
  }

  /**
   * Plans what to do about a shard that has accepted its loss, and carries it out.
   *
   * @param restored the parts that went back, noticed or not
   * @param made the leases of other names, with the rows of their cells
   */
  async bringForward(
    index: number,
    restored: ReadonlySet<Part<object>>,
    made: readonly Made[],
  ): Promise<void> {
    const status = await this.#statusOf(this.#simulation.coordinator.shard(index));
    if (status?.state !== "reconciling" || status.loss?.accepted === undefined) return;
    this.#addMade(made);
    this.#active = this.#simulation.cells;
    const isFrozen = this.#random.chance(0.6);
    if (isFrozen) await this.#setStates("FROZEN");
    await this.#commitOpen(0.6);
    await this.#simulation.pass(DELIVERED_MS, PASS_STEPS);
    await this.record(0.5);
    const { loss } = status;
    const io = planIo(this.#simulation);
    const client = planClient(this.#simulation, index);
    const since = new ChangesSince(io, client, this.#names, index, loss.accepted?.position ?? 0);
    const evidence = await this.#evidenceOf(index, loss, since);
    const found = weigh(evidence, this.#names.keyOf);
    this.#checkKnown(index, evidence, found);
    for (const finding of found.findings) this.#checkCertain(finding, restored);
    this.#see(found);
    const lines = found.findings.map((finding) => this.#decided(finding));
    await this.#commitOpen(0.5);
    if (!isFrozen) for (let count = 0; count < 2; count += 1) await this.#change(this.#random.pick(NAMES));
    const header = newHeader({
      id: "the plan",
      part: `shard-${index}`,
      created_at: "",
      loss_noticed_at: timeOf(loss.noticedAtMs),
      through: found.through,
      newest_seen: 0,
      read_through: since.position,
    });
    const run = new PlanRun(io, client, this.#names, { header, lines }, "a simulated reason", since);
    await this.#carryOut(run, index, lines, restored);
    if (isFrozen) await this.#setStates("ACTIVE");
    if (this.#simulation.replans)
      await new Replanning(this.#simulation, index, timeOf(loss.noticedAtMs)).run();
  }

  async #evidenceOf(
    index: number,
    loss: NonNullable<PartStatus["loss"]>,
    since: ChangesSince,
  ): Promise<Evidence> {
    const forgetful: string[] = [];
    for (const [cell, ledger] of this.#simulation.coordinator.ledgers) {
      const status = await this.#statusOf(ledger);
      const acceptedAt = status?.acceptedAtMs ?? null;
      const part = {
        state: status?.state ?? "lost",
        accepted_at: acceptedAt === null ? null : timeOf(acceptedAt),
      };
      if (isForgetful(part, timeOf(loss.noticedAtMs))) forgetful.push(cell);
    }
    const incarnations = loss.incarnations.map(([incarnation, first]) => ({
      incarnation,
      first_position: first,
    }));
    const { pages, backup } = this.#of(index);
    const present = this.#claimsOf(index);
    const isWhole = await this.#simulation.runUntil(since.update());
    return {
      present,
      left: new LeftHistory(incarnations, loss.point?.position ?? 0, loss.accepted?.incarnation ?? 0),
      backup,
      logs: pages,
      seen: loss.seenPoints ?? [],
      isDeclared: loss.seen === null,
      forgetful,
      since: isWhole ? new Set([...since.byName.keys(), ...since.uuids]) : undefined,
    };
  }

  /** What the plan takes for known is what the shard had at that point. */
  #checkKnown(index: number, { present, seen }: Evidence, { base, through, findings }: Findings): void {
    const point = seen.find(({ position }) => position === through);
    const truth = point && this.#of(index).truths.get(keyOfPoint(point));
    if (base === "nothing" || truth === undefined) return;
    this.#simulation.judge.see("J1");
    const now = this.#byName(present);
    for (const { bucket, known } of findings) {
      const key = this.#names.keyOf(bucket);
      this.#expect(
        textOf(known) === textOf(truth.get(key)),
        () =>
          `the plan takes ${key} for ${textOf(known)} at ${through}, but it was ${textOf(truth.get(key))}`,
      );
    }
    const found = new Set(findings.map(({ bucket }) => this.#names.keyOf(bucket)));
    for (const [key, claim] of truth)
      this.#expect(
        found.has(key) || now.has(key),
        () => `the plan does not know of ${key}, which was ${textOf(claim)} at ${through}`,
      );
  }

  /** What is certain takes no name from a row, and gives it to no cell without one. */
  #checkCertain(
    { bucket, proposal, known, now, isCertain }: Finding,
    restored: ReadonlySet<Part<object>>,
  ): void {
    const owners = this.#sureOwners(bucket.value);
    if (!isCertain || owners === undefined) return;
    // A ledger that has noticed nothing may have forgotten what it had seen.
    const cells = [...owners.map(([cell]) => cell.id), known?.cell, now?.cell];
    const { ledgers } = this.#simulation.coordinator;
    for (const cell of cells) {
      const ledger = cell === undefined ? undefined : ledgers.get(cell);
      if (ledger !== undefined && restored.has(ledger)) return;
    }
    const isRight = this.#lostCommits.has(bucket.value)
      ? !owners.some((owner) => known?.cell !== owner[0].id && (known !== null || (now && isOf(now, owner))))
      : known === null
        ? owners.length === 0
        : owners.some((owner) => isOf(known, owner));
    this.#expect(
      isRight,
      () =>
        `the plan is certain to ${proposal} ${bucket.value} from ${textOf(now)} to ${textOf(known)}, but ` +
        `the rows are ${textOfRows(owners)}`,
    );
  }

  /** What a person decides who asks the cells. */
  #decided(finding: Finding): PlanLine {
    const line = lineOf(finding);
    if (finding.isCertain) return line;
    const { known, now, proposal, bucket } = finding;
    const owners = this.#sureOwners(bucket.value);
    const isRight =
      owners !== undefined &&
      (known === null || owners.some((owner) => isOf(known, owner))) &&
      (now === null || !owners.some((owner) => isOf(now, owner)));
    return { ...line, do: isRight ? proposal : "leave" };
  }

  async #carryOut(
    run: PlanRun,
    index: number,
    lines: readonly PlanLine[],
    restored: ReadonlySet<Part<object>>,
  ): Promise<void> {
    const before = this.#byName(this.#claimsOf(index));
    const running = run.run().catch((error: unknown): undefined => {
      // The shard no longer tells every change, or a ledger that is lost refuses everything.
      if (!(error instanceof CommandError) && !isLeaseholdError(error)) throw error;
      this.#simulation.judge.see("a plan was not carried out");
    });
    if (this.#random.chance(0.2)) this.#simulation.coordinator.shard(index).crash();
    const done = await this.#simulation.runUntil(running);
    await this.#simulation.pass(DELIVERED_MS, PASS_STEPS);
    const after = this.#byName(this.#claimsOf(index));
    this.#checkTaken(before, after, restored);
    if (done !== undefined) this.#checkDone(done, lines, after, index);
  }

  /** No row has lost its claim, and no claim was made for a cell without the row. */
  #checkTaken(before: Claims, after: Claims, restored: ReadonlySet<Part<object>>): void {
    for (const canonical of this.#rows.keys()) {
      const owners = this.#sureOwners(canonical);
      const key = this.#names.keyOf({ type: "ROUTES", value: canonical });
      const [was, is] = [before.get(key), after.get(key)];
      if (owners === undefined || textOf(was) === textOf(is) || this.#lostCommits.has(canonical)) continue;
      const { ledgers } = this.#simulation.coordinator;
      if ([...ledgers.values()].some((ledger) => restored.has(ledger))) continue;
      this.#expect(
        is === undefined
          ? !owners.some((owner) => was && isOf(was, owner))
          : owners.some((owner) => isOf(is, owner)),
        () =>
          `${canonical} went from ${textOf(was)} to ${textOf(is)} while a plan was carried out, but the ` +
          `rows are ${textOfRows(owners)}`,
      );
    }
  }

  /** What was not left is as the plan says. */
  #checkDone(done: Done, lines: readonly PlanLine[], after: Claims, index: number): void {
    const left = new Set(done.left.map(({ name }) => name));
    if (done.claimed + done.released + done.replaced > 0) this.#simulation.judge.see("J3");
    for (const { name, known, do: action } of lines) {
      if (action === null || action === "leave" || left.has(`${name.type} ${name.value}`)) continue;
      const claim = after.get(this.#names.keyOf(name));
      const isHeld =
        read(this.#simulation.coordinator.shard(index), "hold", "canonical = ?", name.value).length > 0;
      const isDone =
        known === null
          ? claim === undefined
          : claim?.cell === known.cell_id && claim.source.id === known.source.id;
      this.#expect(
        isHeld || isDone || this.#rows.get(name.value) === undefined || this.#unsure.has(name.value),
        () => `a plan should ${action} ${name.value}, which is ${textOf(claim)} afterwards`,
      );
    }
  }

  #see({ base, doubt, findings }: Findings): void {
    const { judge } = this.#simulation;
    if (findings.length > 0) judge.see(`planned from ${base}`);
    for (const { isCertain, proposal, because } of findings) {
      judge.see(`planned ${isCertain ? proposal : "to ask a person"}`);
      if (isCertain) judge.see("J2");
      else if (because !== doubt) judge.see("J4");
    }
  }

  /** Other names of this run: their leases are committed once their cells have the rows. */
  #addMade(made: readonly Made[]): void {
    for (const { cell, name, isCommitted } of made)
      if (isCommitted && !this.#rows.has(name.canonical))
        this.#rows.set(name.canonical, new Map([[cell, name as LocalRow]]));
      else if (!isCommitted) this.#unsure.add(name.canonical);
  }

  #owners(canonical: string): [Cell, LocalRow][] {
    return [...(this.#rows.get(canonical) ?? [])];
  }

  /** Undefined: nobody knows, or the name is of another part of the run. */
  #sureOwners(canonical: string): [Cell, LocalRow][] | undefined {
    const isOpen = this.#open.some(({ row }) => row.canonical === canonical);
    if (isOpen || this.#unsure.has(canonical) || !this.#rows.has(canonical)) return undefined;
    return this.#owners(canonical);
  }

  async #setStates(state: "FROZEN" | "ACTIVE"): Promise<void> {
    for (const ledger of this.#simulation.coordinator.ledgers.values()) {
      const status = await this.#send(ledger, "status", {});
      if (status?.ok !== true) continue;
      const { stateVersion } = status.value as { stateVersion: number };
      await this.#send(ledger, "setState", { state, stateVersion });
    }
  }

  async #statusOf(part: Part<object>): Promise<PartStatus | undefined> {
    const answer = await this.#send(part, "part", {});
    return answer?.ok === true ? (answer.value as PartStatus) : undefined;
  }

  /** The newest durable point of a shard. */
  #pointOf(index: number): HistoryPoint {
    const part = this.#simulation.coordinator.shard(index);
    const position = read<{ position: number }>(part, "log", "true ORDER BY position").at(-1)?.position ?? 0;
    const incarnations = read<{ incarnation: number; first_position: number }>(
      part,
      "incarnation",
      "true ORDER BY incarnation",
    );
    const last = incarnations.findLast(({ first_position: first }) => first <= position);
    return { incarnation: last?.incarnation ?? 0, position };
  }

  /** The durable claims of a shard, without those of declared types. */
  #claimsOf(index: number): Claim[] {
    return read<ClaimRow>(this.#simulation.coordinator.shard(index), "claim", "true").flatMap((row) => {
      const bucket = shipped.numbered("bucket", row.bucket_type)?.name;
      const subject = shipped.numbered("subject", row.subject_type)?.name;
      const source = shipped.numbered("source", row.source_type)?.name;
      if (bucket === undefined || subject === undefined || source === undefined) return [];
      const { cell, uuid, epoch, value, scope } = row;
      const claim = {
        cell,
        uuid,
        epoch,
        bucket: { type: bucket, value },
        subject: { type: subject, id: row.subject_id },
        source: { type: source, id: row.source_id },
        ...(scope === null ? {} : { scope }),
      };
      return [claim as Claim];
    });
  }

  #byName(claims: readonly Claim[]): Claims {
    return new Map(claims.map((claim) => [this.#names.keyOf(claim.bucket), claim]));
  }

  #of(index: number): Recorded {
    const recorded = this.#recorded[index];
    if (recorded === undefined) throw new Error(`there is no shard ${index}`);
    return recorded;
  }

  #expect(isRight: boolean, message: () => string): void {
    this.#simulation.judge.check("I53", isRight, message);
  }

  #send(part: Part<object>, method: string, fields: object): Promise<Reply<unknown> | undefined> {
    return this.#simulation.runUntil(this.#simulation.operator.reply(part, method, fields));
  }
}

const rowOf = (canonical: string, id: string): LocalRow => ({
  type: bucketType("ROUTES"),
  canonical,
  value: canonical,
  subject: { type: "NAMESPACE", id },
  source: { type: "RAILS_TABLE_ROUTES", id },
});

const keyOfPoint = ({ incarnation, position }: HistoryPoint): string => `${incarnation} ${position}`;

const isOf = (claim: Claim, [cell, row]: readonly [Cell, LocalRow]): boolean =>
  claim.cell === cell.id && claim.source.id === row.source.id;

const textOf = (claim: Claim | null | undefined): string =>
  claim ? `cell ${claim.cell}, row ${claim.source.id}` : "free";

const textOfRows = (owners: readonly [Cell, LocalRow][]): string =>
  `[${owners.map(([cell, row]) => `cell ${cell.id}, row ${row.source.id}`).join("; ")}]`;

import type {
  DirectoryReconciliation,
  Snapshot,
} from "../../../src/coordinator/kernel/directory/messages.ts";
import type { MintedKey } from "../../../src/coordinator/capabilities/keys/messages.ts";
import type {
  DeclaredTypes,
  KnownTypes,
  TypeSet,
} from "../../../src/coordinator/capabilities/types/messages.ts";
import {
  noIdentities,
  type IdentitySet,
  type Issuer,
} from "../../../src/coordinator/capabilities/identities/identities.ts";
import { isSameType, Types, type TypeEntry } from "../../../src/common/types/types.ts";
import { operator } from "../../support/ops.ts";
import { shipped } from "../../support/types.ts";
import { operationsOf } from "./judge/growth-watch.ts";
import { storedTypes } from "./judge/type-watch.ts";
import { read } from "./made-leases.ts";
import type { Part } from "./part.ts";
import { checkTypes } from "./record-check.ts";
import type { Random } from "./random.ts";
import type { Simulation } from "./simulation.ts";

// The last phase of some runs: the storage of the directory goes back to an earlier durable state, with or
// without that of the ledgers or with an empty D1. What it must notice is computed from the changes of keys
// and types that were acknowledged before a run of the cron ended without an error, not from the points that
// are stored.

const PASS_STEPS = 20_000;

interface KeyChange {
  keyId: string;
  isRevoked: boolean;
  /** A run of the cron has told D1 and the ledgers of it. */
  isWitnessed: boolean;
}

/** A type that was declared, or came into use. */
interface TypeChange {
  entry: TypeEntry;
  isWitnessed: boolean;
}

/** The identities were changed. */
interface IdentityChange {
  position: number;
  isWitnessed: boolean;
}

const RESTORE = "restore";

/** The numbers of the types that this phase declares. */
const FIRST_NUMBER = 20_000;

export async function directoryGoesBack(simulation: Simulation): Promise<void> {
  const stage = new DirectoryStage(simulation);
  await stage.change(stage.random.between(0, 3));
  if (stage.random.chance(0.7)) await stage.runCron();
  const versions = simulation.coordinator.parts.map((part) => [part, part.disk.version] as const);
  await stage.change(stage.random.between(0, 5));
  if (stage.random.chance(0.3)) await stage.useNew();
  simulation.endJudging();
  stage.restore(versions);
  await stage.change(stage.random.between(0, 3));
  if (stage.random.chance(0.3)) await stage.useMany();
  if (stage.random.chance(0.3)) await stage.runCronWithoutD1();
  await stage.runCron();
  stage.checkNoticed();
  await stage.reconcile();
}

class DirectoryStage {
  readonly #simulation: Simulation;
  readonly random: Random;
  /** Of its own, so that the rest of the phase doesn't depend on the identities. */
  readonly #identityRandom: Random;
  /** Each change takes a position, and so hides what other changes alone would show. */
  readonly #hasIdentities: boolean;
  readonly #directory: Part<object>;
  readonly #changes: KeyChange[] = [];
  readonly #typeChanges: TypeChange[] = [];
  readonly #identityChanges: IdentityChange[] = [];
  /** The restore that this phase begins. Undefined: it begins none. */
  readonly #restore: { id: string; isBegun: boolean; isWitnessed: boolean } | undefined;
  /** What the directory lost when it went back, as a text, and whether it was witnessed. */
  #lost: readonly { what: string; isWitnessed: boolean }[] = [];
  /** Whether D1 has something that the directory lost. */
  #isInD1 = false;
  /** The number of changes of types before D1 was emptied. */
  #forgotten = 0;
  #keys = 0;
  #types = 0;
  #issuers = 0;

  constructor(simulation: Simulation) {
    this.#simulation = simulation;
    this.random = simulation.faults.stream("the directory goes back");
    this.#identityRandom = simulation.faults.stream("the identities");
    this.#hasIdentities = this.#identityRandom.chance(0.5);
    this.#directory = simulation.coordinator.directory;
    const hasRestore = simulation.faults.stream("the restore").chance(0.5);
    this.#restore = hasRestore ? { id: RESTORE, isBegun: false, isWitnessed: false } : undefined;
  }

  /**
   * Mints and revokes keys, declares types, and types come into use. In between, parts are restarted, and the
   * cron runs.
   */
  async change(most: number): Promise<void> {
    for (let change = 0; change < most; change += 1) {
      for (const part of [this.#directory, ...this.#simulation.coordinator.ledgers.values()])
        if (this.random.chance(0.4) && part.disk.pending === 0) part.crash();
      if (this.random.chance(0.4)) await this.#changeTypes();
      if (this.#hasIdentities && this.#identityRandom.chance(0.4)) await this.#changeIdentities();
      await this.#beginRestore();
      const known = this.#changes.filter(({ isRevoked }) => !isRevoked);
      const isRevoked = known.length > 0 && this.random.chance(0.5);
      const keyId = isRevoked ? this.random.pick(known).keyId : `key-${(this.#keys += 1)}`;
      const method = isRevoked ? "revokeKey" : "recordKey";
      // Some changes arrive while the cron runs, so that it sees some of their effects and not others.
      const cron = this.random.chance(0.3) ? this.#simulation.cronJob.run() : undefined;
      if (cron !== undefined) await this.#simulation.pass(this.random.between(0, 100), PASS_STEPS);
      const answer = await this.#ask(method, { key: keyOf(keyId) });
      if (cron !== undefined) await this.#simulation.runUntil(cron);
      // Only so many keys may be revoked, or described, at a time.
      if (typeof answer !== "string") this.#changes.push({ keyId, isRevoked, isWitnessed: false });
      if (this.random.chance(0.3)) await this.runCron();
    }
  }

  async #beginRestore(): Promise<void> {
    if (this.#restore === undefined || this.#restore.isBegun) return;
    const { id } = this.#restore;
    const operation = { id, kind: "restore", about: "deployment" };
    this.#restore.isBegun = typeof (await this.#ask("beginOperation", { operation })) !== "string";
  }

  get #hasRestore(): boolean {
    return operationsOf(this.#directory).operations.some(({ id }) => id === RESTORE);
  }

  async #changeTypes(): Promise<void> {
    if (this.random.chance(0.5)) return this.#declare();
    const { unused } = this;
    // The newest types, more often than others, are those that this phase has declared.
    await this.#use(this.random.chance(0.5) ? unused.slice(-2) : this.random.shuffle(unused).slice(0, 1));
  }

  /** An operator changes the identities. Sometimes another one has read the same, and is faster (A4). */
  async #changeIdentities(): Promise<void> {
    const snapshot = await this.#ask<Snapshot>("snapshot", {});
    if (typeof snapshot === "string") return;
    const position = snapshot.identities?.position ?? 0;
    const isOvertaken = this.#identityRandom.chance(0.3);
    const faster = isOvertaken ? await this.#putIdentities(position) : "nobody";
    const answer = await this.#putIdentities(position);
    this.#expectIdentities(
      typeof faster === "string" || typeof answer === "string",
      () => `two changes that are based on the identities at ${position} were both carried out`,
    );
  }

  async #putIdentities(position: number): Promise<IdentitySet | string> {
    this.#issuers += 1;
    const identities = { issuers: [issuerOf(`issuer-${this.#issuers}`)], authorities: [] };
    const answer = await this.#ask<IdentitySet>("changeIdentities", { position, identities });
    if (typeof answer !== "string")
      this.#identityChanges.push({ position: answer.position, isWitnessed: false });
    return answer;
  }

  /** A new type comes into use, and D1 gets a copy of that. */
  async useNew(): Promise<void> {
    await this.#declare();
    await this.#use(this.unused.slice(-1));
    await this.runCron();
  }

  /** Types come into use, one by one, so that the set gets a later position than the copy in D1. */
  async useMany(): Promise<void> {
    for (const entry of this.random.shuffle(this.unused).slice(0, 8)) await this.#use([entry]);
  }

  /** As an isolate does that has seen nothing of the directory. */
  async #use(entries: readonly TypeEntry[]): Promise<void> {
    if (entries.length === 0) return;
    const { record } = this.#simulation.cronJob;
    const saved = await this.#simulation.runUntil(record.saveTypes(this.#set));
    const copiedAt = saved.ok ? saved.value : 0;
    const answer = await this.#ask<DeclaredTypes>("useTypes", { entries, copiedAt });
    if (typeof answer === "string") return;
    for (const entry of entries)
      this.#typeChanges.push({ entry: { ...entry, isInUse: true }, isWitnessed: false });
  }

  /** An operator declares one more type. As the Worker does, it reads the set with what D1 has seen. */
  async #declare(): Promise<void> {
    const seen = this.#simulation.cronJob.record.directoryPoint();
    const snapshot = await this.#ask<Snapshot>("snapshot", seen === undefined ? {} : { seen: { ...seen } });
    if (typeof snapshot === "string" || snapshot.types === null) return;
    const { position, entries } = snapshot.types;
    this.#types += 1;
    const { rule } = shipped.entries[0] ?? { rule: null };
    const name = `LATE_${this.#types}`;
    const added = { kind: "bucket", number: FIRST_NUMBER + this.#types, name, rule, isInUse: false } as const;
    const answer = await this.#ask<DeclaredTypes>("changeTypes", {
      position,
      entries: [...entries, added],
      copiedAt: this.#simulation.cronJob.record.types()?.position ?? 0,
    });
    if (typeof answer !== "string") this.#typeChanges.push({ entry: added, isWitnessed: false });
  }

  get unused(): TypeEntry[] {
    return this.types.entries.filter(({ isInUse }) => !isInUse);
  }

  /** The set that the directory has now. */
  get types(): Types {
    return new Types(this.#set.entries);
  }

  get #set(): TypeSet {
    return storedTypes(this.#directory.disk) ?? { position: 0, entries: shipped.entries };
  }

  /** Returns what went wrong. */
  async runCron(): Promise<string | null> {
    const { error } = await this.#simulation.runUntil(this.#simulation.cronJob.run());
    if (error === null)
      for (const change of [
        ...this.#changes,
        ...this.#typeChanges,
        ...this.#identityChanges,
        ...(this.#restore?.isBegun === true ? [this.#restore] : []),
      ])
        change.isWitnessed = true;
    return error;
  }

  /** The ledgers are only woken, and say what they remember in their answers. */
  async runCronWithoutD1(): Promise<void> {
    const { record } = this.#simulation.cronJob;
    record.isDown = true;
    await this.runCron();
    record.isDown = false;
  }

  /**
   * The directory goes back. Of those that remember it, either D1 is empty, or the ledgers go back with it,
   * so that the other one alone has to notice.
   */
  restore(versions: readonly (readonly [Part<object>, number])[]): void {
    const { ledgers } = this.#simulation.coordinator;
    const kind = this.random.weighted({ alone: 1, "without D1": 3, "with the ledgers": 2 });
    const parts = new Set<Part<object>>([this.#directory]);
    if (kind === "without D1") {
      this.#simulation.cronJob.record.forgetPoints();
      this.#forgotten = this.#typeChanges.length;
    }
    if (kind === "with the ledgers") for (const ledger of ledgers.values()) parts.add(ledger);
    for (const [part, version] of versions) if (parts.has(part)) part.goBack(version);
    for (const ledger of ledgers.values())
      if (this.random.chance(0.5) && ledger.disk.pending === 0) ledger.crash();
    this.#lost = [
      ...this.#changes
        .filter((change) => !this.#has(change))
        .map(({ keyId, isWitnessed }) => ({ what: keyId, isWitnessed })),
      ...this.#typeChanges
        .filter(({ entry }) => !hasType(this.types, entry))
        .map(({ entry, isWitnessed }) => ({ what: entry.name, isWitnessed })),
      ...this.#identityChanges
        .filter(({ position }) => position > this.#identities.position)
        .map(({ isWitnessed }) => ({ what: "the identities", isWitnessed })),
      ...(this.#restore?.isBegun === true && !this.#hasRestore
        ? [{ what: "the restore", isWitnessed: this.#restore.isWitnessed }]
        : []),
    ];
    const typesInD1 = this.#simulation.cronJob.record.types()?.entries ?? [];
    this.#isInD1 =
      kind !== "without D1" &&
      (this.#copies().some((copy) => !this.#has(copy)) ||
        typesInD1.some((entry) => !hasType(this.types, entry)));
    this.#simulation.judge.see(`the directory went back ${kind}`);
  }

  /** It must notice if it lost a change that was witnessed, and must not notice if it has all changes. */
  checkNoticed(): void {
    const isLost = stateOf(this.#directory) === "lost";
    const witnessed = this.#lost.find(({ isWitnessed }) => isWitnessed);
    this.#expect(
      isLost || witnessed === undefined,
      () => `the directory has lost the change of ${witnessed?.what}, but has not noticed it`,
    );
    this.#expect(isLost || !this.#isInD1, () => "the directory has lost what D1 has, but has not noticed it");
    this.#expect(
      !isLost || this.#lost.length > 0,
      () => "the directory claims to have lost something, but has all changes",
    );
    if (isLost) this.#simulation.judge.see("the directory noticed that it went back");
  }

  /** An operator reconciles it with the copies in D1. Then it has everything that they have. */
  async reconcile(): Promise<void> {
    if (stateOf(this.#directory) !== "lost") return;
    if (this.random.chance(0.5)) this.#directory.crash();
    const snapshot = await this.#ask("snapshot", {});
    this.#expect(snapshot === "HISTORY_LOST", () => "the directory has gone back, but answers a snapshot");
    const { record } = this.#simulation.cronJob;
    const copies = record.keys();
    const types = record.types();
    const operations = record.operations();
    const [hadRestore, isInCopy] = [
      this.#hasRestore,
      operations?.operations.some(({ id }) => id === RESTORE) === true,
    ];
    const typesLeft = this.types.entries;
    const left = this.#changes.filter((change) => this.#has(change));
    const page = {
      cells: [],
      keys: copies,
      types,
      operations,
      isPlacementConfirmed: true,
      operator,
    };
    const before = this.#directory.disk.version;
    await this.#ask("reconcile", { ...page, isLast: true, dryRun: true });
    this.#expect(this.#directory.disk.version === before, () => "a dry run has changed the directory");
    if (this.random.chance(0.5)) {
      await this.#ask("reconcile", { ...page, isLast: false, dryRun: false });
      this.#directory.crash();
      const known = await this.#ask<KnownTypes>("types", {});
      if (typeof known !== "string") this.#checkTypes(new Types(known.entries), usedIn(types, typesLeft));
    }
    const done = await this.#ask<DirectoryReconciliation>("reconcile", {
      ...page,
      isLast: true,
      dryRun: false,
    });
    this.#expect(
      typeof done === "object" && done.status.state === "complete",
      () => `the directory was not reconciled: ${JSON.stringify(done)}`,
    );
    const accepted = this.#identities.issuers.map(({ name }) => name);
    this.#expectIdentities(accepted.length === 0, () => `${accepted.join()} is accepted again after a loss`);
    this.#simulation.judge.see("A4");
    this.#expect(
      this.#hasRestore === (hadRestore || isInCopy),
      () => "a restore that runs was lost by the reconciliation, or one was made up",
    );
    if (isInCopy && !hadRestore) this.#simulation.judge.see("A7");
    for (const copy of this.#copies())
      this.#expect(this.#has(copy), () => `${copy.keyId} was not restored from D1`);
    for (const change of left)
      this.#expect(this.#has(change), () => `${change.keyId} was lost by the reconciliation`);
    this.#checkTypes(this.types, usedIn(types, typesLeft));
    // Also those that came into use after the copy was made, because D1 had them before.
    const used = this.#typeChanges.slice(this.#forgotten).filter(({ entry }) => entry.isInUse);
    this.#checkTypes(
      this.types,
      used.map(({ entry }) => entry),
    );
    if (types !== null) this.#simulation.judge.see("T6");
    await this.#simulation.pass(1_000, PASS_STEPS);
    for (let run = 0; run < 2; run += 1) {
      const error = await this.runCron();
      this.#expect(
        stateOf(this.#directory) === "complete",
        () => "the directory is lost again after its reconciliation",
      );
      if (error === null) checkTypes(this.#simulation);
      await this.change(1);
    }
    this.#simulation.judge.see("H8");
  }

  /** What the directory has stored of the identities. */
  get #identities(): IdentitySet {
    const [row] = read<{ value: string }>(this.#directory, "meta", "name = 'identities'");
    return row === undefined ? noIdentities : (JSON.parse(row.value) as IdentitySet);
  }

  #checkTypes(types: Types, used: readonly TypeEntry[]): void {
    for (const entry of used)
      this.#expect(
        hasType(types, entry),
        () =>
          `${entry.kind} ${entry.name} was in use, but is not in the reconciled directory's set as it was`,
      );
  }

  /** What D1 has of the keys. */
  #copies(): Pick<KeyChange, "keyId" | "isRevoked">[] {
    const { record } = this.#simulation.cronJob;
    return record.keys().map(({ keyId, revokedAtMs }) => ({ keyId, isRevoked: revokedAtMs !== null }));
  }

  #has({ keyId, isRevoked }: Pick<KeyChange, "keyId" | "isRevoked">): boolean {
    const rows = read<{ revoked_at_ms: number | null }>(this.#directory, "minted_key", "key_id = ?", keyId);
    return rows.some((row) => !isRevoked || row.revoked_at_ms !== null);
  }

  /** Returns the answer's value, or the reason of its refusal. */
  async #ask<T = unknown>(method: string, fields: object): Promise<T | string> {
    const sent = this.#simulation.operator.reply(this.#directory, method, fields);
    const reply = await this.#simulation.runUntil(sent);
    if (reply === undefined) return "no answer";
    return reply.ok ? (reply.value as T) : (reply.refusal.reason ?? reply.refusal.code);
  }

  #expectIdentities(isRight: boolean, message: () => string): void {
    this.#simulation.judge.check("I39", isRight, message);
  }

  #expect(isRight: boolean, message: () => string): void {
    this.#simulation.judge.check("I26", isRight, message);
  }
}

/** The entries in use in D1's copy, and in what was left of the set. */
const usedIn = (copy: TypeSet | null, left: readonly TypeEntry[]): TypeEntry[] =>
  [...(copy?.entries ?? []), ...left].filter(({ isInUse }) => isInUse);

/** Whether a set has the entry, marked as in use if it is. */
function hasType(types: Types, entry: TypeEntry): boolean {
  const own = types.named(entry.kind, entry.name);
  return own !== undefined && isSameType(own, entry) && (own.isInUse || !entry.isInUse);
}

const keyOf = (keyId: string): MintedKey => ({
  keyId,
  role: "router",
  cell: null,
  note: null,
  createdAtMs: 1,
  expiresAtMs: 2 ** 50,
  revokedAtMs: null,
});

const issuerOf = (name: string): Issuer => ({
  name,
  issuer: `https://${name}.example`,
  audience: "leasehold",
  algorithms: ["RS256"],
  jwksUrl: `https://${name}.example/keys`,
  keys: null,
  rules: [{ claims: { sub: ["deployer"] }, role: "operator", cell: null }],
});

function stateOf(part: Part<object>): "complete" | "lost" {
  return read(part, "meta", "name = 'history_lost'").length > 0 ? "lost" : "complete";
}

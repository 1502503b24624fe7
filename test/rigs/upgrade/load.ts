import { patience } from "../../../demo/patience.ts";
import { Random } from "../../../demo/random.ts";
import { inParallel } from "../../../src/users/cell/in-parallel.ts";
import { ClientLeases, type LeaseState } from "../../../src/users/cell/remote-leases.ts";
import { describeFailure, type Answer } from "../../../src/users/client/answer.ts";
import {
  createClient,
  type Batch,
  type Client,
  type ClientOptions,
} from "../../../src/users/client/index.ts";
import { listRecords, lookUp, lookUpAll, type ClaimRecord } from "../../../demo/records.ts";
import type { DevKeys } from "../../../src/hosts/workerd/dev-keys.ts";
import { claimOf, sourceTypes, type Row } from "../crash/local-database.ts";

export interface LoadOptions {
  url: string;
  keys: DevKeys;
  seed: number;
  /** The clients repeat calls until their deadline, instead of as often as the SDK does by default. */
  isPatient: boolean;
  namesOfCell: number;
}

/** What happened in a phase. */
export interface PhaseFigures {
  name: string;
  /** Durations of begins that were granted, with all attempts of the SDK. */
  beginsMs: number[];
  calls: number;
  /** Attempts after the first one, which the SDK made by itself. */
  retries: number;
  /** Cycles that did not start, because too many were under way. */
  skipped: number;
}

/** A name that only one cell uses. Only one cycle at a time changes it, so its owner is always known. */
interface Name {
  cell: string;
  value: string;
  /** Undefined: nobody has it. */
  row: Row | undefined;
  isBusy: boolean;
  /** Counts what may have changed it. */
  changes: number;
  /** The outcome of a call is unknown, which counts as a failure. Nothing is expected of the name. */
  isUncertain: boolean;
}

interface OpenLease {
  cell: string;
  lease: string;
  names: readonly Name[];
  /** What each name becomes with the commit. */
  rows: ReadonlyMap<Name, Row | undefined>;
}

/** Cycles start at a rate, whatever the answers take, or as many run at a time. */
export type Pace = { perSecond: number } | { atOnce: number };

const CELLS = ["1", "2", "3", "4"] as const;
const MOST_NAMES = 4;
const MOST_UNDER_WAY = 200;
const MOST_OPEN = 40;
/** The share of each kind of cycle. All others change names. */
const LOOKUPS = 0.15;
const LEASE_LISTINGS = 0.08;
const RECORD_LISTINGS = 0.01;
/** The shares of granted leases that are rolled back, left open until the next phase, or contested. */
const ROLLBACKS = 0.2;
const LEFT_OPEN = 0.12;
const RIVALS = 0.05;
/** A begin that meets only leases in the way is repeated, as its answer says. */
const TRIES = 100;
const TRY_AGAIN_MS = 100;
const VERIFY_AT_ONCE = 8;

/** No call fails because the machine is busy. */
const DEADLINES = { attemptMs: 30_000, deadlineMs: 60_000 };

const sleep = (ms: number): Promise<void> => new Promise((resume) => setTimeout(resume, ms));

/** Cells under load, and what they were told. */
export class Load {
  readonly failures: string[] = [];
  /** What contradicts what a cell was told. */
  readonly complaints: string[] = [];
  readonly phases: PhaseFigures[] = [];
  readonly #options: LoadOptions;
  readonly #random: Random;
  readonly #clients = new Map<string, Client>();
  readonly #router: Client;
  readonly #operator: Client;
  readonly #names: readonly Name[];
  readonly #open = new Set<OpenLease>();
  /** The state of each lease that was decided. */
  readonly #decided = new Map<string, { cell: string; state: LeaseState }>();
  readonly #revoked: { cell: string; key: string }[] = [];
  readonly #underWay = new Set<Promise<void>>();
  #nextSource = 1;
  /** The cycles that have ended. */
  #ended = 0;

  constructor(options: LoadOptions) {
    this.#options = options;
    this.#random = new Random(options.seed, "load");
    for (const cell of CELLS) this.#clients.set(cell, this.#connect(options.keys.cells[cell], cell));
    this.#router = this.#connect(options.keys.router);
    this.#operator = this.#connect(options.keys.operator);
    this.#names = CELLS.flatMap((cell) =>
      Array.from({ length: options.namesOfCell }, (_, index) => ({
        cell,
        value: `cell-${cell}-name-${index}`,
        row: undefined,
        isBusy: false,
        changes: 0,
        isUncertain: false,
      })),
    );
  }

  get leases(): number {
    return this.#decided.size;
  }

  /** Begins a phase: decides the leases that the one before has left open, and revokes a key. */
  async begin(name: string): Promise<void> {
    this.phases.push({ name, beginsMs: [], calls: 0, retries: 0, skipped: 0 });
    await this.decideOpen();
    await this.#revokeKey();
  }

  /** Runs cycles until the work has ended, and waits for those that have started. */
  async runDuring(pace: Pace, work: () => Promise<void>): Promise<void> {
    const ending = { soon: false };
    const cycles = this.#runUntil(pace, ending);
    try {
      await work();
    } finally {
      ending.soon = true;
      await cycles;
    }
  }

  /** Waits until more cycles have ended. */
  async passed(count: number): Promise<void> {
    for (const until = this.#ended + count; this.#ended < until;) await sleep(5);
  }

  async #runUntil(pace: Pace, ending: { soon: boolean }): Promise<void> {
    const startedMs = performance.now();
    for (let started = 0; !ending.soon; await sleep(5)) {
      const due =
        "perSecond" in pace
          ? Math.floor(((performance.now() - startedMs) / 1_000) * pace.perSecond)
          : started + pace.atOnce - this.#underWay.size;
      for (; started < due; started += 1) {
        if (this.#underWay.size >= MOST_UNDER_WAY) this.#phase.skipped += 1;
        else this.#start();
      }
    }
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
  }

  #start(): void {
    const cycle = this.#cycle()
      .catch((error: unknown) => this.#fail("a cycle", String(error)))
      .finally(() => {
        this.#ended += 1;
        this.#underWay.delete(cycle);
      });
    this.#underWay.add(cycle);
  }

  get #phase(): PhaseFigures {
    const phase = this.phases.at(-1);
    if (phase === undefined) throw new Error("no phase has begun");
    return phase;
  }

  #connect(key = "", cell?: string): Client {
    const hooks: ClientOptions["hooks"] = { onRetry: () => (this.#phase.retries += 1) };
    const retrying = this.#options.isPatient ? patience : {};
    return createClient({ ...retrying, ...DEADLINES, hooks, url: this.#options.url, key, cell });
  }

  #client(cell: string): Client {
    return this.#clients.get(cell) ?? this.#connect("", cell);
  }

  #leases(cell: string): ClientLeases {
    return new ClientLeases(this.#client(cell));
  }

  #fail(what: string, why: string): void {
    this.failures.push(`${this.#phase.name}: ${what}: ${why}`);
  }

  #complain(what: string): void {
    this.complaints.push(`${this.#phase.name}: ${what}`);
  }

  async #cycle(): Promise<void> {
    const kind = this.#random.next();
    const cell = CELLS[this.#random.between(0, CELLS.length - 1)] ?? "1";
    if (kind < LOOKUPS) await this.#lookUp();
    else if (kind < LOOKUPS + LEASE_LISTINGS) await this.#listLeases(cell);
    else if (kind < LOOKUPS + LEASE_LISTINGS + RECORD_LISTINGS) await this.#listRecords(cell);
    else await this.#change(cell);
  }

  async #change(cell: string): Promise<void> {
    const names = this.#take(cell);
    if (names.length === 0) return;
    const rows = new Map<Name, Row | undefined>();
    const batch = { creates: [] as Row[], destroys: [] as Row[], replaces: [] as Row[] };
    for (const name of names) {
      const fresh: Row = { type: "ROUTES", value: name.value, subject: 1, source: this.#nextSource };
      this.#nextSource += 1;
      if (name.row !== undefined && this.#random.chance(0.6)) {
        batch.destroys.push(name.row);
        rows.set(name, undefined);
      } else {
        (name.row === undefined ? batch.creates : batch.replaces).push(fresh);
        rows.set(name, fresh);
      }
    }
    const open: OpenLease = { cell, lease: this.#random.uuid(), names, rows };
    const begun = await this.#begin(open, {
      creates: batch.creates.map(claimOf),
      destroys: batch.destroys.map(claimOf),
      replaces: batch.replaces.map(claimOf),
    });
    if (!begun) return this.#letGo(names, true);
    if (this.#random.chance(RIVALS)) await this.#rival(open);
    if (this.#random.chance(LEFT_OPEN) && this.#open.size < MOST_OPEN) this.#open.add(open);
    else await this.#decide(open, this.#random.chance(ROLLBACKS) ? "rollback" : "commit");
  }

  /** Takes some names of a cell, so that no other cycle changes them. */
  #take(cell: string): Name[] {
    const free = this.#names.filter((name) => name.cell === cell && !name.isBusy && !name.isUncertain);
    const first = this.#random.between(0, Math.max(0, free.length - 1));
    const taken = free.slice(first, first + this.#random.between(1, MOST_NAMES));
    for (const name of taken) {
      name.isBusy = true;
      name.changes += 1;
    }
    return taken;
  }

  #letGo(names: readonly Name[], areUncertain = false): void {
    for (const name of names) {
      name.isBusy = false;
      name.isUncertain ||= areUncertain;
    }
  }

  async #begin({ cell, lease }: OpenLease, batch: Batch): Promise<boolean> {
    for (let attempt = 1; ; attempt += 1) {
      const startedMs = performance.now();
      this.#phase.calls += 1;
      const answer = await this.#leases(cell).begin(lease, batch);
      if (answer.kind === "ok" && answer.value === "GRANTED") {
        this.#phase.beginsMs.push(performance.now() - startedMs);
        return true;
      }
      const isLeased = answer.kind === "refused" && answer.code === "ABORTED";
      if (!isLeased || attempt === TRIES) {
        this.#fail(`begin of lease ${lease}`, textOf(answer));
        return false;
      }
      await sleep(TRY_AGAIN_MS);
    }
  }

  /** A begin of another cell for a name that is leased must be refused. */
  async #rival({ cell, names: [name] }: OpenLease): Promise<void> {
    if (name === undefined) return;
    const other = CELLS.find((each) => each !== cell) ?? "1";
    const row: Row = { type: "ROUTES", value: name.value, subject: 1, source: 0 };
    const lease = this.#random.uuid();
    this.#phase.calls += 1;
    const answer = await this.#leases(other).begin(lease, { creates: [claimOf(row)] });
    if (answer.kind === "ok")
      this.#complain(`cell ${other} was granted ${name.value}, which cell ${cell} holds`);
    else if (answer.kind === "unknown" || answer.conflicts.length === 0)
      this.#fail(`begin of a rival for ${name.value}`, textOf(answer));
  }

  async #decide(open: OpenLease, decision: "commit" | "rollback"): Promise<void> {
    const { cell, lease, names, rows } = open;
    this.#phase.calls += 1;
    const answer = await this.#leases(cell)[decision](lease);
    const state = decision === "commit" ? "COMMITTED" : "ROLLED_BACK";
    if (answer.kind !== "ok" || answer.value !== state) {
      this.#fail(`${decision} of lease ${lease}`, textOf(answer));
      return this.#letGo(names, true);
    }
    this.#decided.set(lease, { cell, state });
    if (decision === "commit") for (const [name, row] of rows) name.row = row;
    this.#letGo(names);
  }

  async decideOpen(): Promise<void> {
    const all = [...this.#open];
    this.#open.clear();
    await inParallel(all, VERIFY_AT_ONCE, (open) =>
      this.#decide(open, this.#random.chance(ROLLBACKS) ? "rollback" : "commit"),
    );
  }

  /** Reads, and calls `judge` for each of these names that no cycle has changed meanwhile. */
  async #read<T>(
    what: string,
    names: readonly Name[],
    read: () => Promise<T>,
    judge: (found: T, name: Name, index: number) => void,
  ): Promise<void> {
    const before = names.map(({ isBusy, changes }) => (isBusy ? -1 : changes));
    this.#phase.calls += 1;
    let found: T;
    try {
      found = await read();
    } catch (error) {
      return this.#fail(what, String(error));
    }
    for (const [index, name] of names.entries())
      if (before[index] === name.changes && !name.isUncertain) judge(found, name, index);
  }

  async #lookUp(): Promise<void> {
    const first = this.#random.between(0, this.#names.length - 1);
    const names = this.#names.slice(first, first + MOST_NAMES);
    await this.#read(
      "a lookup",
      names,
      () => lookUp(this.#router, names.map(bucketOf)),
      (found, name, index) => this.#judge(name, found[index]),
    );
  }

  /** All of a cell's leases that were open before and after the listing must be in it. */
  async #listLeases(cell: string): Promise<void> {
    const open = [...this.#open].filter((each) => each.cell === cell);
    this.#phase.calls += 1;
    try {
      const listed = await this.#client(cell).leases.list({ pageSize: 1 }).all();
      const uuids = new Set(listed.map(({ uuid }) => uuid));
      for (const each of open)
        if (this.#open.has(each) && !uuids.has(each.lease))
          this.#complain(`the open lease ${each.lease} is missing in the listing`);
    } catch (error) {
      this.#fail("a listing of leases", String(error));
    }
  }

  async #listRecords(cell: string): Promise<void> {
    const names = this.#names.filter((name) => name.cell === cell);
    await this.#read(
      "a listing of records",
      names,
      async () => recordsByName(await listRecords(this.#client(cell), sourceTypes.ROUTES, 40)),
      (found, name) => this.#judge(name, found.get(name.value)),
    );
  }

  #judge({ cell, value, row }: Name, record: ClaimRecord | undefined): void {
    const expected = row === undefined ? "nobody" : `cell ${cell}, source ${row.source}`;
    const shown = record === undefined ? "nobody" : `cell ${record.cell}, source ${record.source.id}`;
    if (expected !== shown) this.#complain(`${value} belongs to ${expected}, but ${shown} is shown`);
  }

  /** Ledgers keep revoked keys in a table that the next version changes. */
  async #revokeKey(): Promise<void> {
    const cell = CELLS[this.phases.length % CELLS.length] ?? "1";
    this.#phase.calls += 2;
    try {
      const minted = await this.#operator.keys.mint({ role: "cell", cell_id: cell });
      await this.#operator.keys.revoke(minted.id, { reason: "the rig revokes it" });
      this.#revoked.push({ cell, key: minted.key });
    } catch (error) {
      this.#fail("a key", String(error));
    }
  }

  /** Checks that everything that a cell was told holds. No cycle may run. */
  async verify(): Promise<void> {
    await this.decideOpen();
    const names = this.#names.filter(({ isUncertain }) => !isUncertain);
    const found = await lookUpAll(this.#router, names.map(bucketOf), () => {});
    for (const [index, name] of names.entries()) this.#judge(name, found[index]);
    for (const cell of CELLS) {
      await this.#listRecords(cell);
      const left = await this.#client(cell).leases.list().all();
      if (left.length > 0 && this.failures.length === 0)
        this.#complain(`cell ${cell} still has ${left.length} open leases`);
    }
    await inParallel([...this.#decided], VERIFY_AT_ONCE, async ([lease, { cell, state }]) => {
      const answer = await this.#leases(cell).get(lease);
      const shown = answer.kind === "ok" ? answer.value : textOf(answer);
      if (shown !== state) this.#complain(`lease ${lease} was ${state}, and is ${shown}`);
    });
    for (const { cell, key } of this.#revoked) {
      const answer = await new ClientLeases(this.#connect(key, cell)).get(this.#random.uuid());
      if (answer.kind !== "refused" || answer.code !== "UNAUTHENTICATED")
        this.#complain(`a revoked key of cell ${cell} was answered: ${textOf(answer)}`);
    }
  }
}

const bucketOf = ({ value }: Name): { type: "ROUTES"; value: string } => ({ type: "ROUTES", value });

const recordsByName = (records: readonly ClaimRecord[]): Map<string, ClaimRecord> =>
  new Map(records.map((record) => [record.bucket.value, record]));

const textOf = (answer: Answer<LeaseState>): string =>
  answer.kind === "ok" ? answer.value : describeFailure(answer);

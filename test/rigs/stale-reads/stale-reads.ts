/**
 * Load over HTTP that reads right after each acknowledged begin, commit and rollback: lookups, listings and
 * begins, over other connections and by other cells. Each lane changes names of its own, one lease after the
 * other, so it knows what every answer must show (C3, R2, R3, B8).
 */
import { patience } from "../../../demo/patience.ts";
import { Random } from "../../../demo/random.ts";
import { listRecords, lookUp, type ClaimRecord } from "../../../demo/records.ts";
import { createClient, type Batch, type Bucket, type Client } from "../../../src/users/client/index.ts";

export interface StaleReadsOptions {
  url: string;
  keys: { router: string; cells: Readonly<Record<string, string>> };
  seed: number;
  /** Lanes run at the same time. */
  lanes: number;
  /** Leases of each lane. */
  leases: number;
}

interface Counts {
  leases: number;
  lookups: number;
  listings: number;
  begins: number;
  /** Begins of other cells that got no answer, or are to be repeated. They prove nothing. */
  unanswered: number;
}

export interface Checked {
  counts: Counts;
  /** Answers that showed something else than what was acknowledged. */
  complaints: string[];
}

/** No call may fail because the machine is slow. */
const SLOW_MS = 300_000;
const NAMES = 6;
const SOURCE_TYPE = "RAILS_TABLE_USERS";
/** A lane lists only its own part of its cell's records. */
const SOURCES_OF_LANE = 1_000;

export async function readRightAfter(options: StaleReadsOptions): Promise<Checked> {
  const counts = { leases: 0, lookups: 0, listings: 0, begins: 0, unanswered: 0 };
  const complaints: string[] = [];
  const lanes = Array.from(
    { length: options.lanes },
    (_, lane) => new Lane(options, lane, counts, complaints),
  );
  await Promise.all(lanes.map((lane) => lane.run()));
  return { counts, complaints };
}

/** A claim of the lane's cell, with the lease of an open change. */
interface Owned {
  subject: string;
  source: string;
  status: ClaimRecord["status"];
  lease: string | undefined;
}

type Names = ReadonlyMap<string, Owned>;

class Lane {
  readonly #counts: Counts;
  readonly #complaints: string[];
  readonly #random: Random;
  readonly #leases: number;
  readonly #lane: number;
  readonly #cell: string;
  readonly #owner: Client;
  readonly #router: Client;
  readonly #other: Client;
  readonly #names: readonly string[];
  #owned: Names = new Map();
  #nextSource = 0;

  constructor(
    { url, keys, seed, leases }: StaleReadsOptions,
    lane: number,
    counts: Counts,
    complaints: string[],
  ) {
    this.#counts = counts;
    this.#complaints = complaints;
    this.#random = new Random(seed, "stale reads", lane);
    this.#leases = leases;
    this.#lane = lane;
    const cells = Object.keys(keys.cells);
    const clientOf = (place: number, more = {}): Client => {
      const cell = cells[place % cells.length] ?? "";
      return createClient({
        ...patience,
        deadlineMs: SLOW_MS,
        ...more,
        url,
        key: keys.cells[cell] ?? "",
        cell,
      });
    };
    this.#cell = cells[lane % cells.length] ?? "";
    this.#owner = clientOf(lane);
    this.#router = createClient({ ...patience, deadlineMs: SLOW_MS, url, key: keys.router });
    // A retry would hide a refusal because of a hold that is over.
    this.#other = clientOf(lane + 1, { retries: 0 });
    this.#names = Array.from({ length: NAMES }, (_, name) => `lane-${seed}-${lane}-${name}`);
  }

  async run(): Promise<void> {
    for (let lease = 0; lease < this.#leases && this.#complaints.length === 0; lease += 1)
      await this.#change();
  }

  /** Runs one lease to its end, and reads after its grant and after its end. */
  async #change(): Promise<void> {
    const uuid = this.#random.uuid();
    const { batch, granted, committed, touched } = this.#draw(uuid);
    const before = this.#owned;
    await this.#owner.leases.begin(batch, { uuid });
    if (this.#random.chance(0.3)) await this.#read("a begin", granted);
    const isCommitted = this.#random.chance(0.75);
    await (isCommitted ? this.#owner.leases.commit(uuid) : this.#owner.leases.rollback(uuid));
    this.#counts.leases += 1;
    this.#owned = isCommitted ? committed : before;
    const after = isCommitted ? "a commit" : "a rollback";
    const areBeginsFirst = this.#random.chance(0.5);
    if (!areBeginsFirst) await this.#read(after, this.#owned);
    await Promise.all(touched.map((name) => this.#tryAsOther(after, name)));
    if (areBeginsFirst) await this.#read(after, this.#owned);
  }

  /** Draws creates of free names, and destroys and replaces of owned ones. */
  #draw(lease: string): { batch: Batch; granted: Names; committed: Names; touched: string[] } {
    const touched = this.#random.shuffled(this.#names).slice(0, this.#random.between(1, 3));
    const granted = new Map(this.#owned);
    const committed = new Map(this.#owned);
    const creates = [];
    const destroys = [];
    const replaces = [];
    for (const name of touched) {
      const owned = this.#owned.get(name);
      const fresh = this.#fresh();
      if (owned === undefined) {
        creates.push(claimOf(name, fresh));
        granted.set(name, { ...fresh, status: "LEASE_CREATING", lease });
        committed.set(name, fresh);
      } else if (this.#random.chance(0.5)) {
        destroys.push(claimOf(name, owned));
        granted.set(name, { ...owned, status: "LEASE_DESTROYING", lease });
        committed.delete(name);
      } else {
        replaces.push(claimOf(name, fresh));
        granted.set(name, { ...owned, lease });
        committed.set(name, fresh);
      }
    }
    return { batch: { creates, destroys, replaces }, granted, committed, touched };
  }

  /** The sources of the lane come in no order, so that replaces move claims to other pages. */
  #fresh(): Owned {
    this.#nextSource = (this.#nextSource + 387) % SOURCES_OF_LANE;
    const source = String((this.#lane + 1) * SOURCES_OF_LANE + this.#nextSource);
    return { subject: `${this.#random.between(1, 99)}`, source, status: "ACTIVE", lease: undefined };
  }

  async #read(after: string, expected: Names): Promise<void> {
    await Promise.all([
      this.#lookUp(after, expected),
      this.#lookUp(after, expected),
      this.#find(after, expected),
      this.#list(after, expected, 1),
      this.#list(after, expected, NAMES),
    ]);
  }

  async #lookUp(after: string, expected: Names): Promise<void> {
    const found = await lookUp(this.#router, this.#names.map(bucketOf));
    this.#counts.lookups += 1;
    for (const [index, name] of this.#names.entries())
      this.#check(`${after}: a lookup`, name, found[index], expected.get(name));
  }

  async #find(after: string, expected: Names): Promise<void> {
    const name = this.#names[this.#random.between(0, NAMES - 1)] ?? "";
    const found = await this.#router.records.find(bucketOf(name));
    this.#counts.lookups += 1;
    const status = found?.record.status ?? "free";
    const wanted = expected.get(name)?.status ?? "free";
    if (status !== wanted) this.#complain(`${after}: a lookup of ${name} showed ${status}, not ${wanted}`);
  }

  async #list(after: string, expected: Names, pageSize: number): Promise<void> {
    const [from, to] = [this.#lane + 1, this.#lane + 2].map((lane) => lane * SOURCES_OF_LANE);
    const range = { sourceIdGt: String((from ?? 0) - 1), sourceIdLte: String((to ?? 0) - 1) };
    const listed = await listRecords(this.#owner, SOURCE_TYPE, pageSize, range);
    this.#counts.listings += 1;
    for (const name of this.#names) {
      const [record, again] = listed.filter(({ bucket }) => bucket.value === name);
      this.#check(`${after}: a listing`, name, record, expected.get(name));
      if (again !== undefined) this.#complain(`${after}: a listing has ${name} twice`);
    }
  }

  /**
   * Another cell takes a name, and gives it back, or tries to destroy it. Both are answered by the claim of
   * the lane's cell, or by its absence.
   */
  async #tryAsOther(after: string, name: string): Promise<void> {
    const uuid = this.#random.uuid();
    const isDestroy = this.#random.chance(0.5);
    const claim = claimOf(name, { subject: "1", source: "1" });
    const batch = isDestroy ? { destroys: [claim] } : { creates: [claim] };
    const isFree = !this.#owned.has(name);
    const expected = isDestroy ? (isFree ? "absent" : "not_owner") : isFree ? "granted" : "taken";
    const answer = await this.#other.leases.answers.begin(uuid, batch, {});
    const conflicts = answer.kind === "refused" ? answer.conflicts.map(({ kind }) => kind) : [];
    const isAnswered = answer.kind === "ok" || conflicts.length > 0 || isFinal(answer);
    if (isAnswered) this.#counts.begins += 1;
    else this.#counts.unanswered += 1;
    const answered = answer.kind === "ok" ? "granted" : conflicts.join(", ") || "an error";
    if (isAnswered && answered !== expected)
      this.#complain(
        `${after}: another cell's ${isDestroy ? "destroy" : "create"} of ${name} was answered ` +
          `${answered}, not ${expected}`,
      );
    // A begin without an answer may have been carried out.
    if (answer.kind !== "refused") await this.#giveBack(uuid);
  }

  async #giveBack(uuid: string): Promise<void> {
    for (;;) {
      const answer = await this.#other.leases.answers.rollback(uuid, {});
      if (answer.kind === "ok") return;
    }
  }

  #check(what: string, name: string, found: ClaimRecord | undefined, expected: Owned | undefined): void {
    const shown = found && textOf({ ...found, subject: found.subject.id, source: found.source.id });
    const wanted = expected && textOf({ cell: this.#cell, ...expected });
    if (shown !== wanted)
      this.#complain(`${what} of ${name} showed ${shown ?? "nothing"}, not ${wanted ?? "nothing"}`);
  }

  #complain(text: string): void {
    this.#complaints.push(`after ${text}`);
  }
}

const isFinal = (answer: { kind: string; retryable?: boolean }): boolean =>
  answer.kind === "refused" && answer.retryable === false;

const bucketOf = (value: string): Bucket => ({ type: "ROUTES", value });

const claimOf = (name: string, { subject, source }: Pick<Owned, "subject" | "source">) => ({
  bucket: bucketOf(name),
  subject: { type: "USER" as const, id: subject },
  source: { type: SOURCE_TYPE, id: source } as const,
});

const textOf = ({ cell, subject, source, status, lease }: Owned & { cell: string }): string =>
  `${status} of cell ${cell}, subject ${subject}, source ${source}, lease ${lease ?? "none"}`;

import type { Claim } from "../../../demo/entry.ts";
import { patience } from "../../../demo/patience.ts";
import { listRecords, lookUp, type ClaimRecord } from "../../../demo/records.ts";
import { inParallel } from "../../../src/users/cell/in-parallel.ts";
import { reconcile } from "../../../src/users/cell/reconcile.ts";
import { ClientLeases, type LeaseState } from "../../../src/users/cell/remote-leases.ts";
import { describeFailure, type Answer } from "../../../src/users/client/answer.ts";
import {
  createClient,
  type Batch,
  type Bucket,
  type Client,
  type Fetch,
} from "../../../src/users/client/index.ts";
import { claimOf, sourceTypes, type LocalDatabase } from "./local-database.ts";
import type { Call, Records } from "./record.ts";

/**
 * Verifies the state after a crash: acknowledged results hold, unacknowledged calls may have either result,
 * and nothing is left over.
 */

export interface Deployment {
  url: string;
  keys: { router: string; cells: Record<string, string> };
  /** The `fetch` of all calls of the verification. */
  fetch: Fetch;
}

export interface CellSide {
  cell: string;
  database: LocalDatabase;
}

/** One sentence for each problem. */
export type Complaints = string[];

/** What the clients know about one lease. */
interface KnownLease {
  cell: string;
  lease: string;
  batch: Batch;
  begin: LastAnswer;
  commit: LastAnswer;
  rollback: LastAnswer;
}

type LastAnswer = "never asked" | "ok" | "refused" | "unknown";
type Found = LeaseState | "none";

const WIDTH = 12;
const LOOKUP = 50;
/** Longer than any sweep or alarm takes, however slow the machine is. */
const SWEEPS_MS = 120_000;
/** No call of the verification may fail because the machine is slow. */
const SLOW_MS = 300_000;
/** Small pages, so that there are several. */
const PAGE = 7;

export const bucketKey = ({ type, value }: Bucket): string => `${type} ${value.toLowerCase()}`;
const opsOf = ({ creates = [], destroys = [], replaces = [] }: Batch) => [
  ...creates,
  ...destroys,
  ...replaces,
];

function leasesOf({ calls }: Records): Map<string, KnownLease> {
  const leases = new Map<string, KnownLease>();
  for (const { kind, cell, lease = "", batch = {}, answer } of calls) {
    if (kind === "lookup") continue;
    const known = leases.get(lease) ?? {
      cell,
      lease,
      batch,
      begin: "never asked",
      commit: "never asked",
      rollback: "never asked",
    };
    // A call that was acknowledged once stays acknowledged.
    if (known[kind] !== "ok") known[kind] = answer.kind;
    leases.set(lease, known);
  }
  return leases;
}

/** The states that a lease may be in after the answers that its cell received. */
function allowed({ begin, commit, rollback }: KnownLease): Found[] {
  if (commit === "ok") return ["COMMITTED"];
  if (rollback === "ok") return ["ROLLED_BACK"];
  if (commit === "unknown") return ["GRANTED", "COMMITTED"];
  if (rollback === "unknown")
    return begin === "ok" ? ["GRANTED", "ROLLED_BACK"] : ["none", "GRANTED", "ROLLED_BACK"];
  if (begin === "ok") return ["GRANTED"];
  return begin === "unknown" ? ["none", "GRANTED"] : ["none"];
}

export class Verifier {
  readonly complaints: Complaints;
  readonly #deployment: Deployment;
  readonly #cells: readonly CellSide[];
  readonly #leases: Map<string, KnownLease>;
  readonly #buckets: Map<string, Bucket>;
  readonly #initial: ReadonlyMap<string, string>;
  replays = 0;

  /** `initial`: the owners before the records begin, by `bucketKey`. */
  constructor(
    deployment: Deployment,
    cells: readonly CellSide[],
    records: Records,
    initial: ReadonlyMap<string, string> = new Map(),
  ) {
    this.#initial = initial;
    this.#deployment = deployment;
    this.#cells = cells;
    this.complaints = [...records.problems];
    this.#leases = leasesOf(records);
    const named = records.calls.flatMap(({ batch, buckets = [] }: Call) => [
      ...buckets,
      ...opsOf(batch ?? {}).map(({ bucket }) => bucket),
    ]);
    this.#buckets = new Map(named.map((bucket) => [bucketKey(bucket), bucket]));
  }

  /**
   * Runs all checks in order. `forgetful`: outcomes may have been pruned. `sweepsMs`: how long sweeps and
   * alarms may take until rows and claims agree.
   */
  async all({ forgetful = false, sweepsMs = SWEEPS_MS } = {}): Promise<Complaints> {
    const seen = await this.#lookUpAll();
    const states = await this.#readStates();
    this.#judgeStates(states, forgetful);
    this.#judgeOwners(seen, forgetful ? this.#remembered(states) : states);
    await inParallel(this.#leases.values(), WIDTH, async (known) =>
      this.#replay(known, states.get(known.lease) ?? "none", forgetful),
    );
    for (const side of this.#cells) await this.#reconcile(side);
    for (const side of this.#cells) this.complaints.push(...(await this.#compareInTime(side, sweepsMs)));
    this.#compareCells();
    return this.complaints;
  }

  #complain(text: string): void {
    this.complaints.push(text);
  }

  async #lookUpAll(): Promise<Map<string, ClaimRecord | undefined>> {
    const buckets = [...this.#buckets.values()];
    const router = this.#connect(this.#deployment.keys.router);
    const seen = new Map<string, ClaimRecord | undefined>();
    for (let from = 0; from < buckets.length; from += LOOKUP) {
      const part = buckets.slice(from, from + LOOKUP);
      const found = await lookUp(router, part);
      for (const [index, bucket] of part.entries()) seen.set(bucketKey(bucket), found[index]);
    }
    return seen;
  }

  async #readStates(): Promise<Map<string, Found>> {
    const states = new Map<string, Found>();
    await inParallel(this.#leases.values(), WIDTH, async ({ cell, lease }) => {
      states.set(lease, foundOf(await this.#remote(cell).get(lease)));
    });
    return states;
  }

  #judgeStates(states: ReadonlyMap<string, Found>, forgetful: boolean): void {
    for (const known of this.#leases.values()) {
      const state = states.get(known.lease) ?? "none";
      const { begin, commit, rollback } = known;
      if (allowed(known).includes(state)) continue;
      // Only decided leases can be forgotten.
      if (forgetful && state === "none" && (commit !== "never asked" || rollback !== "never asked")) continue;
      this.#complain(
        `lease ${known.lease} is ${state}, though its cell received: ` +
          `begin ${begin}, commit ${commit}, rollback ${rollback}`,
      );
    }
  }

  /** For leases that the coordinator may have forgotten, uses the outcome that the cell received. */
  #remembered(states: ReadonlyMap<string, Found>): Map<string, Found> {
    const outcomeOf = (lease: string): Found =>
      this.#leases.get(lease)?.commit === "ok" ? "COMMITTED" : "none";
    return new Map([...states].map(([lease, state]) => [lease, state === "none" ? outcomeOf(lease) : state]));
  }

  /**
   * For each bucket, its owner has one more committed create than destroys, and all others have as many. This
   * holds in any order.
   */
  #judgeOwners(seen: ReadonlyMap<string, ClaimRecord | undefined>, states: ReadonlyMap<string, Found>): void {
    const balances = this.#balances(states);
    for (const [key, record] of seen) {
      const balance = [...(balances.get(key) ?? [])].filter(([, count]) => count !== 0);
      const [owner, ...others] = balance;
      if (others.length > 0 || (owner !== undefined && owner[1] !== 1)) {
        this.#complain(
          `${key}: creates less destroys of the committed leases are ${JSON.stringify(balance)}`,
        );
      } else this.#judgeOwner(key, owner?.[0], record, states);
    }
  }

  #judgeOwner(
    key: string,
    owner: string | undefined,
    record: ClaimRecord | undefined,
    states: ReadonlyMap<string, Found>,
  ): void {
    const holder = record?.lease === undefined ? undefined : this.#leases.get(record.lease);
    const held =
      holder === undefined
        ? "no lease that the clients know"
        : `lease ${holder.lease}, ${states.get(holder.lease)}`;
    const shown =
      record === undefined ? "no owner" : `${record.status} of cell ${record.cell}, held by ${held}`;
    if (owner !== undefined) {
      if (record?.cell !== owner || record.status === "LEASE_CREATING")
        this.#complain(`${key}: cell ${owner} owns it, but a lookup finds ${shown}`);
      return;
    }
    if (record === undefined) return;
    const state = holder === undefined ? "none" : states.get(holder.lease);
    if (record.status === "LEASE_CREATING" && state === "GRANTED") return;
    // A commit without an answer may not have reached this shard yet.
    if (record.status === "LEASE_DESTROYING" && state === "COMMITTED" && holder?.commit === "unknown") return;
    this.#complain(`${key}: it has no owner, but a lookup finds ${shown}`);
  }

  #balances(states: ReadonlyMap<string, Found>): Map<string, Map<string, number>> {
    const balances = new Map([...this.#initial].map(([bucket, cell]) => [bucket, new Map([[cell, 1]])]));
    const add = (cell: string, { bucket }: Pick<Claim, "bucket">, by: number): void => {
      const ofBucket = balances.get(bucketKey(bucket)) ?? new Map<string, number>();
      balances.set(bucketKey(bucket), ofBucket.set(cell, (ofBucket.get(cell) ?? 0) + by));
    };
    for (const { cell, lease, batch } of this.#leases.values()) {
      if (states.get(lease) !== "COMMITTED") continue;
      for (const claim of batch.creates ?? []) add(cell, claim, 1);
      for (const claim of batch.destroys ?? []) add(cell, claim, -1);
    }
    return balances;
  }

  /** Repeats calls: the answers must be consistent (B2, C4, C7). */
  async #replay(known: KnownLease, before: Found, forgetful: boolean): Promise<void> {
    const { cell, lease, batch, begin } = known;
    // A refused begin is not repeated, because that would be a new begin. Neither is one whose outcome may
    // have been forgotten.
    if (before === "none" && (begin !== "unknown" || forgetful)) return;
    const remote = this.#remote(cell);
    const begun = await remote.begin(lease, batch);
    const state = before === "none" ? foundAfter(begun) : before;
    if (before === "ROLLED_BACK") this.#expectRefusal(known, "begin", begun, "LEASE_ROLLED_BACK");
    else if (before !== "none") this.#expectState(known, "begin", begun, before);
    if (begin === "unknown") await this.#tryAnotherBatch(known, state);
    // Half of the open leases are left to the reconciliation, and half of the decisions without an answer to
    // the ledger's alarm.
    if (state !== "GRANTED" && known.commit !== "ok" && known.rollback !== "ok" && lease >= "8") return;
    if (state === "COMMITTED") await this.#repeat(known, "commit", "rollback", "LEASE_COMMITTED");
    else if (state === "ROLLED_BACK") await this.#repeat(known, "rollback", "commit", "LEASE_ROLLED_BACK");
    else if (state === "GRANTED" && lease < "8" && !(await this.#isSaved(known)))
      await this.#repeat(known, "rollback", "commit", "LEASE_ROLLED_BACK");
    else if (state === "GRANTED")
      this.#expectState(known, "begin", await remote.begin(lease, batch), "GRANTED");
    else {
      // The begin was refused. A rollback still fences the UUID (C7).
      await this.#repeat(known, "rollback", "commit", "LEASE_ROLLED_BACK");
      this.#expectRefusal(known, "begin", await remote.begin(lease, batch), "LEASE_ROLLED_BACK");
    }
  }

  async #isSaved({ cell, lease }: KnownLease): Promise<boolean> {
    const side = this.#cells.find((each) => each.cell === cell);
    return side !== undefined && (await side.database.has([lease])).length > 0;
  }

  async #tryAnotherBatch(known: KnownLease, state: Found): Promise<void> {
    if (state === "none" || state === "ROLLED_BACK") return;
    const value = `another-${known.lease}`;
    const other = claimOf({ type: "ROUTES", value, subject: 1, source: 1 });
    this.#expectRefusal(
      known,
      "begin",
      await this.#remote(known.cell).begin(known.lease, { creates: [other] }),
      "LEASE_ID_REUSED",
    );
  }

  /** Sends the decision twice, then the opposite one. */
  async #repeat(
    known: KnownLease,
    decision: "commit" | "rollback",
    other: "commit" | "rollback",
    reason: string,
  ): Promise<void> {
    const remote = this.#remote(known.cell);
    const outcome = decision === "commit" ? "COMMITTED" : "ROLLED_BACK";
    this.#expectState(known, decision, await remote[decision](known.lease), outcome);
    this.#expectState(known, decision, await remote[decision](known.lease), outcome);
    this.#expectRefusal(known, other, await remote[other](known.lease), reason);
  }

  #expectState({ lease }: KnownLease, what: string, answer: Answer<LeaseState>, state: LeaseState): void {
    this.replays += 1;
    if (answer.kind === "ok" && answer.value === state) return;
    this.#complain(
      `lease ${lease}, ${state}: the replayed ${what} got ` +
        (answer.kind === "ok" ? answer.value : describeFailure(answer)),
    );
  }

  #expectRefusal({ lease }: KnownLease, what: string, answer: Answer<LeaseState>, reason: string): void {
    this.replays += 1;
    if (answer.kind === "refused" && answer.reason === reason) return;
    this.#complain(
      `lease ${lease}: the replayed ${what} must be refused with ${reason}, but ` +
        `got ${answer.kind === "ok" ? answer.value : describeFailure(answer)}`,
    );
  }

  /** Runs the SDK's reconciliation, without waiting times, because no other process of the cell runs. */
  async #reconcile({ cell, database }: CellSide): Promise<void> {
    const options = { commitGraceMs: 0, staleMs: 0, orphanMs: 0, full: true, pageSize: PAGE };
    const run = () =>
      reconcile(
        {
          local: database,
          remote: this.#remote(cell),
          report: (finding) => this.#complain(`cell ${cell}: ${JSON.stringify(finding)}`),
        },
        options,
      );
    await run();
    const { counters } = await run();
    if (counters.processed !== 0)
      this.#complain(`cell ${cell}: the second reconciliation still found ${JSON.stringify(counters)}`);
  }

  /** Waits for the sweeps and alarms to drop orphaned holds and to apply decisions without an answer. */
  async #compareInTime(side: CellSide, sweepsMs: number): Promise<Complaints> {
    for (const endMs = performance.now() + sweepsMs; ;) {
      const complaints = await this.#compare(side);
      if (complaints.length === 0 || performance.now() > endMs) return complaints;
      await new Promise((resume) => setTimeout(resume, 200));
    }
  }

  /** Checks that the claims of a cell match its rows and that no lease is open on either side. */
  async #compare({ cell, database }: CellSide): Promise<Complaints> {
    const found: Complaints = [];
    const rows = new Map(database.rows().map((row) => [claimText(claimOf(row)), row]));
    for (const sourceType of Object.values(sourceTypes)) {
      for (const record of await listRecords(this.#clientOf(cell), sourceType, PAGE)) {
        const text = claimText(record);
        if (!rows.delete(text)) found.push(`cell ${cell} has no row for its record ${text}`);
        if (record.status !== "ACTIVE" || record.lease !== undefined)
          found.push(`${text}: ${record.status} by ${record.lease ?? "no lease"}`);
      }
    }
    for (const text of rows.keys()) found.push(`cell ${cell} has a row without a record: ${text}`);
    const open = await this.#remote(cell).list({ pageToken: "", pageSize: PAGE });
    for (const { uuid } of open.leases) found.push(`cell ${cell}: lease ${uuid} is outstanding`);
    for (const { uuid } of await database.list({ afterUuid: "", limit: 100 }))
      found.push(`cell ${cell}: the row of lease ${uuid} is left`);
    return found;
  }

  #compareCells(): void {
    const owners = new Map<string, string>();
    for (const { cell, database } of this.#cells) {
      for (const row of database.rows()) {
        const key = bucketKey(row);
        if (owners.has(key))
          this.#complain(`${key}: two cells have a row for it, ${owners.get(key)} and ${cell}`);
        owners.set(key, cell);
      }
    }
  }

  #remote(cell: string): ClientLeases {
    return new ClientLeases(this.#clientOf(cell));
  }

  #clientOf(cell: string): Client {
    return this.#connect(this.#deployment.keys.cells[cell], cell);
  }

  #connect(key = "", cell?: string): Client {
    const { url, fetch } = this.#deployment;
    return createClient({ ...patience, deadlineMs: SLOW_MS, url, key, cell, fetch });
  }
}

const claimText = ({ bucket, subject, source }: Claim): string =>
  `${bucket.type} ${bucket.value} ${subject.type}/${subject.id} ${source.type}/${source.id}`;

function foundOf(answer: Answer<LeaseState>): Found {
  if (answer.kind === "ok") return answer.value;
  if (answer.kind === "refused" && answer.code === "NOT_FOUND") return "none";
  throw new Error(`a lease cannot be read: ${describeFailure(answer)}`);
}

/** The state after a repeated begin whose first attempt had no effect. */
function foundAfter(begun: Answer<LeaseState>): Found {
  if (begun.kind === "ok") return begun.value;
  if (begun.kind === "refused" && (begun.conflicts.length > 0 || begun.code === "ABORTED")) return "none";
  throw new Error(`a repeated begin must be granted or meet a conflict, but got ${describeFailure(begun)}`);
}

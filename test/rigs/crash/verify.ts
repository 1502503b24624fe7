import type { Claim } from "../../../demo/entry.ts";
import { patience } from "../../../demo/patience.ts";
import { listRecords, lookUp, type ClaimRecord } from "../../../demo/records.ts";
import { inParallel } from "../../../src/cell/in-parallel.ts";
import { reconcile } from "../../../src/cell/reconcile.ts";
import { ClientLeases, type LeaseState } from "../../../src/cell/remote-leases.ts";
import { describeFailure, type Answer } from "../../../src/client/answer.ts";
import { createClient, type Batch, type Bucket, type Client, type Fetch } from "../../../src/client/index.ts";
import { claimOf, sourceTypes, type LocalDatabase } from "./local-database.ts";
import type { Call, Records } from "./record.ts";

/** After a crash: what clients were told must be so, what they were not told may be either, and nothing is left over. */

export interface Deployment {
  url: string;
  keys: { router: string; cells: Record<string, string> };
  /** Every call of the verification goes through it. */
  fetch: Fetch;
}

export interface CellSide {
  cell: string;
  database: LocalDatabase;
}

/** One sentence for each thing that is not as it must be. */
export type Complaints = string[];

/** All that the clients know of one lease. */
interface Told {
  cell: string;
  lease: string;
  batch: Batch;
  begin: Heard;
  commit: Heard;
  rollback: Heard;
}

type Heard = "never asked" | "ok" | "refused" | "unknown";
type Found = LeaseState | "none";

const WIDTH = 12;
const LOOKUP = 50;
/** More than any sweep or alarm takes that has to come. */
const SWEEPS_MS = 15_000;
/** Small, so that there are several. */
const PAGE = 7;

export const bucketKey = ({ type, value }: Bucket): string => `${type} ${value.toLowerCase()}`;
const opsOf = ({ creates = [], destroys = [], replaces = [] }: Batch) => [
  ...creates,
  ...destroys,
  ...replaces,
];

function leasesOf({ calls }: Records): Map<string, Told> {
  const leases = new Map<string, Told>();
  for (const { kind, cell, lease = "", batch = {}, answer } of calls) {
    if (kind === "lookup") continue;
    const told = leases.get(lease) ?? {
      cell,
      lease,
      batch,
      begin: "never asked",
      commit: "never asked",
      rollback: "never asked",
    };
    // Acknowledged once is acknowledged.
    if (told[kind] !== "ok") told[kind] = answer.kind;
    leases.set(lease, told);
  }
  return leases;
}

/** Which states a lease may be in, after what its cell was told. */
function allowed({ begin, commit, rollback }: Told): Found[] {
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
  readonly #leases: Map<string, Told>;
  readonly #buckets: Map<string, Bucket>;
  readonly #initial: ReadonlyMap<string, string>;
  replays = 0;

  /** `initial`: who owned what before the records begin, by `bucketKey`. */
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

  /** Everything, in order. `forgetful`: outcomes may have been pruned. `sweepsMs`: how long the last of it may take to become right. */
  async all({ forgetful = false, sweepsMs = SWEEPS_MS } = {}): Promise<Complaints> {
    const seen = await this.#lookUpAll();
    const states = await this.#readStates();
    this.#judgeStates(states, forgetful);
    this.#judgeOwners(seen, forgetful ? this.#remembered(states) : states);
    await inParallel(this.#leases.values(), WIDTH, async (told) =>
      this.#replay(told, states.get(told.lease) ?? "none", forgetful),
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
    for (const told of this.#leases.values()) {
      const state = states.get(told.lease) ?? "none";
      const { begin, commit, rollback } = told;
      if (allowed(told).includes(state)) continue;
      // Only what was decided can be forgotten.
      if (forgetful && state === "none" && (commit !== "never asked" || rollback !== "never asked")) continue;
      this.#complain(
        `lease ${told.lease} is ${state}, though its cell heard: begin ${begin}, commit ${commit}, rollback ${rollback}`,
      );
    }
  }

  /** What the coordinator may have forgotten, its cell was told. */
  #remembered(states: ReadonlyMap<string, Found>): Map<string, Found> {
    const outcomeOf = (lease: string): Found =>
      this.#leases.get(lease)?.commit === "ok" ? "COMMITTED" : "none";
    return new Map([...states].map(([lease, state]) => [lease, state === "none" ? outcomeOf(lease) : state]));
  }

  /** A bucket is created once more than it is destroyed, by its owner, or as often: whatever the order was. */
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
      record === undefined ? "nobody" : `${record.status} of cell ${record.cell}, held by ${held}`;
    if (owner !== undefined) {
      if (record?.cell !== owner || record.status === "LEASE_CREATING")
        this.#complain(`${key}: cell ${owner} owns it, and a lookup finds ${shown}`);
      return;
    }
    if (record === undefined) return;
    const state = holder === undefined ? "none" : states.get(holder.lease);
    if (record.status === "LEASE_CREATING" && state === "GRANTED") return;
    // A commit that nobody heard of may not have come to this shard yet.
    if (record.status === "LEASE_DESTROYING" && state === "COMMITTED" && holder?.commit === "unknown") return;
    this.#complain(`${key}: nobody owns it, and a lookup finds ${shown}`);
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

  /** Rules B2, C4 and C7: every call may be made again, and the answers fit each other. */
  async #replay(told: Told, before: Found, forgetful: boolean): Promise<void> {
    const { cell, lease, batch, begin } = told;
    // What was refused was refused; asking again is another begin. What may have been forgotten is not asked for.
    if (before === "none" && (begin !== "unknown" || forgetful)) return;
    const remote = this.#remote(cell);
    const begun = await remote.begin(lease, batch);
    const state = before === "none" ? foundAfter(begun) : before;
    if (before === "ROLLED_BACK") this.#expectRefusal(told, "begin", begun, "LEASE_ROLLED_BACK");
    else if (before !== "none") this.#expectState(told, "begin", begun, before);
    if (begin === "unknown") await this.#tryAnotherBatch(told, state);
    // Half of what is open is left to the reconciliation, and half of the decisions that nobody heard of to the ledger's alarm.
    if (state !== "GRANTED" && told.commit !== "ok" && told.rollback !== "ok" && lease >= "8") return;
    if (state === "COMMITTED") await this.#repeat(told, "commit", "rollback", "LEASE_COMMITTED");
    else if (state === "ROLLED_BACK") await this.#repeat(told, "rollback", "commit", "LEASE_ROLLED_BACK");
    else if (state === "GRANTED" && lease < "8" && !(await this.#isSaved(told)))
      await this.#repeat(told, "rollback", "commit", "LEASE_ROLLED_BACK");
    else if (state === "GRANTED")
      this.#expectState(told, "begin", await remote.begin(lease, batch), "GRANTED");
    else {
      // Refused: a rollback still closes the id (rule C7).
      await this.#repeat(told, "rollback", "commit", "LEASE_ROLLED_BACK");
      this.#expectRefusal(told, "begin", await remote.begin(lease, batch), "LEASE_ROLLED_BACK");
    }
  }

  async #isSaved({ cell, lease }: Told): Promise<boolean> {
    const side = this.#cells.find((each) => each.cell === cell);
    return side !== undefined && (await side.database.has([lease])).length > 0;
  }

  async #tryAnotherBatch(told: Told, state: Found): Promise<void> {
    if (state === "none" || state === "ROLLED_BACK") return;
    const value = `another-${told.lease}`;
    const other = claimOf({ type: "ROUTES", value, subject: 1, source: 1 });
    this.#expectRefusal(
      told,
      "begin",
      await this.#remote(told.cell).begin(told.lease, { creates: [other] }),
      "LEASE_ID_REUSED",
    );
  }

  /** Twice the decision, then the other one. */
  async #repeat(
    told: Told,
    decision: "commit" | "rollback",
    other: "commit" | "rollback",
    reason: string,
  ): Promise<void> {
    const remote = this.#remote(told.cell);
    const outcome = decision === "commit" ? "COMMITTED" : "ROLLED_BACK";
    this.#expectState(told, decision, await remote[decision](told.lease), outcome);
    this.#expectState(told, decision, await remote[decision](told.lease), outcome);
    this.#expectRefusal(told, other, await remote[other](told.lease), reason);
  }

  #expectState({ lease }: Told, what: string, answer: Answer<LeaseState>, state: LeaseState): void {
    this.replays += 1;
    if (answer.kind === "ok" && answer.value === state) return;
    this.#complain(
      `lease ${lease}, ${state}: the replayed ${what} got ${answer.kind === "ok" ? answer.value : describeFailure(answer)}`,
    );
  }

  #expectRefusal({ lease }: Told, what: string, answer: Answer<LeaseState>, reason: string): void {
    this.replays += 1;
    if (answer.kind === "refused" && answer.reason === reason) return;
    this.#complain(
      `lease ${lease}: the replayed ${what} was to be refused with ${reason}, and got ${answer.kind === "ok" ? answer.value : describeFailure(answer)}`,
    );
  }

  /** The product's own recovery. Nobody else is there, so nothing has to be waited for. */
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

  /** Holds that were nobody's, and decisions that nobody heard of, have the time of the sweeps and alarms. */
  async #compareInTime(side: CellSide, sweepsMs: number): Promise<Complaints> {
    for (const endMs = performance.now() + sweepsMs; ;) {
      const complaints = await this.#compare(side);
      if (complaints.length === 0 || performance.now() > endMs) return complaints;
      await new Promise((resume) => setTimeout(resume, 200));
    }
  }

  /** The claims of a cell are its rows, and no lease is open on either side. */
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
    for (const text of rows.keys()) found.push(`cell ${cell} has a row and no record: ${text}`);
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
        if (owners.has(key)) this.#complain(`${key}: two cells have it, ${owners.get(key)} and ${cell}`);
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
    return createClient({ ...patience, url, key, cell, fetch });
  }
}

const claimText = ({ bucket, subject, source }: Claim): string =>
  `${bucket.type} ${bucket.value} ${subject.type}/${subject.id} ${source.type}/${source.id}`;

function foundOf(answer: Answer<LeaseState>): Found {
  if (answer.kind === "ok") return answer.value;
  if (answer.kind === "refused" && answer.code === "NOT_FOUND") return "none";
  throw new Error(`a lease cannot be read: ${describeFailure(answer)}`);
}

/** Of a begin whose outcome was not known, and that had done nothing. */
function foundAfter(begun: Answer<LeaseState>): Found {
  if (begun.kind === "ok") return begun.value;
  if (begun.kind === "refused" && (begun.conflicts.length > 0 || begun.code === "ABORTED")) return "none";
  throw new Error(
    `a begin that had done nothing was to be granted or to meet a conflict: ${describeFailure(begun)}`,
  );
}

/** Gives up what a run has left. It needs no memory of the run, so it also works after a kill. */
import { pause, type Api, type CellName, type Received } from "./api.ts";
import type { NameTypes, SeenRecord } from "./check-context.ts";
import { describe } from "./nonconformity.ts";

export interface CleanUpOptions {
  api: Api;
  who: CellName;
  cell: string;
  types: NameTypes;
  /** What the names and source ids of the run begin with. */
  prefix: string;
  /** Leases of the run that may be open. */
  open?: readonly string[];
  signal: AbortSignal;
}

export interface CleanedUp {
  rolled_back: number;
  released: number;
}

/** Fewer than any deployment allows in a batch or page by default. */
const AT_ONCE = 100;

/** @throws when something could not be given up, after everything else was */
export async function cleanUp(options: CleanUpOptions): Promise<CleanedUp> {
  const run = new CleanUp(options);
  const steps = [
    () => run.rollBack(options.open ?? []),
    async () => run.rollBack(await run.leasesWithoutNames()),
    () => run.releaseNames(),
  ];
  const failures: unknown[] = [];
  for (const step of steps) await step().catch((error: unknown) => failures.push(error));
  if (failures.length > 0) throw failures[0];
  return run.done;
}

/** The names and leases of a run that are left. */
export async function findLeft(options: CleanUpOptions): Promise<string[]> {
  const run = new CleanUp(options);
  const records = await run.page();
  const names = records.map(({ bucket }) => `the name ${bucket.value}`);
  return [...names, ...(await run.leasesWithoutNames()).map((uuid) => `the lease ${uuid}`)];
}

class CleanUp {
  readonly done: CleanedUp = { rolled_back: 0, released: 0 };
  readonly #options: CleanUpOptions;

  constructor(options: CleanUpOptions) {
    this.#options = options;
  }

  /** @throws when a lease could not be rolled back, after all others */
  async rollBack(uuids: readonly string[]): Promise<void> {
    const failures: unknown[] = [];
    for (const uuid of uuids) await this.#rollBackOne(uuid).catch((error: unknown) => failures.push(error));
    if (failures.length > 0) throw failures[0];
  }

  async #rollBackOne(uuid: string): Promise<void> {
    const received = await this.#send("POST", `/leases/${uuid}/rollback`);
    if (received.status === 200) this.done.rolled_back += 1;
    // A lease that was committed is decided as well.
    else if (received.status !== 409) throw failed(received);
  }

  /** Records of the run, also those that leases hold. */
  async page(): Promise<SeenRecord[]> {
    const { prefix, types } = this.#options;
    const query = new URLSearchParams({
      source_type: types.source,
      // The prefix without its last character comes before all source ids of the run.
      source_id_gt: prefix.slice(0, -1),
      page_size: String(AT_ONCE),
    });
    const received = await this.#send("GET", `/records?${query.toString()}`);
    if (received.status !== 200) throw failed(received);
    const { records } = received.json as { records: SeenRecord[] };
    return records.filter(({ source }) => source?.id.startsWith(prefix) === true);
  }

  async releaseNames(): Promise<void> {
    for (let stalled = 0; ;) {
      const before = this.done.released + this.done.rolled_back;
      const records = await this.page();
      if (records.length === 0) return;
      await this.rollBack([...new Set(records.flatMap(({ lease_uuid: lease }) => lease ?? []))]);
      const free = records.filter(({ lease_uuid: lease }) => (lease ?? null) === null);
      if (free.length > 0) await this.#destroy(free.slice(0, AT_ONCE));
      // A begin of the run that was cut off may still be on its way, and hold a name for a moment.
      stalled = this.done.released + this.done.rolled_back > before ? 0 : stalled + 1;
      if (stalled > MAX_STALLED) throw new Error(`${records.length} names can't be given up`);
      if (stalled > 0) await pause(STALLED_MS, this.#options.signal);
    }
  }

  /** Open leases of the run that only give up names that nobody has. No record shows them. */
  async leasesWithoutNames(): Promise<string[]> {
    const found: string[] = [];
    let token = "";
    for (let page = 0; page === 0 || token !== ""; page += 1) {
      if (page === MAX_PAGES) throw new Error(`the list of leases has more than ${MAX_PAGES} pages`);
      const query = new URLSearchParams({ page_size: "1000", page_token: token });
      const received = await this.#send("GET", `/leases?${query.toString()}`);
      if (received.status !== 200) throw failed(received);
      const listed = received.json as { leases: ListedLease[]; next_page_token: string };
      for (const { uuid, counts } of listed.leases) {
        const holds = counts.creates + counts.replaces + counts.destroys - counts.missing;
        if (holds === 0 && (await this.#isOwn(uuid))) found.push(uuid);
      }
      token = listed.next_page_token;
    }
    return found;
  }

  async #isOwn(uuid: string): Promise<boolean> {
    const received = await this.#send("GET", `/leases/${uuid}`);
    const { lease } = received.json as { lease?: { destroys?: { bucket: { value: string } }[] } };
    const { prefix } = this.#options;
    return lease?.destroys?.some(({ bucket }) => bucket.value.toLowerCase().startsWith(prefix)) === true;
  }

  async #destroy(records: readonly SeenRecord[]): Promise<void> {
    const path = `/leases/${crypto.randomUUID()}`;
    const destroys = records.map(({ bucket }) => ({ bucket }));
    const begun = await this.#send("PUT", path, { destroys, allow_missing: true });
    if (begun.status === 409) return;
    if (begun.status !== 201 && begun.status !== 200) throw failed(begun);
    const committed = await this.#send("POST", `${path}/commit`);
    if (committed.status !== 200) throw failed(committed);
    this.done.released += records.length;
  }

  #send(method: string, path: string, body?: unknown): Promise<Received> {
    const { api, who, cell } = this.#options;
    return api.send(method, `/v1/cells/${cell}${path}`, { who, ...(body === undefined ? {} : { body }) });
  }
}

/** Rounds in a row that give up nothing. */
const MAX_STALLED = 20;
const STALLED_MS = 250;

/** More leases than a cell may have open. */
const MAX_PAGES = 1_000;

interface ListedLease {
  uuid: string;
  counts: { creates: number; destroys: number; replaces: number; missing: number };
}

const failed = (received: Received): Error => new Error(describe(received));

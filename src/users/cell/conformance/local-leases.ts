/**
 * Tests what reconciliation needs from a cell's table of outstanding leases. One suite for every
 * implementation. It runs the recovery matrix (S3) with its real ages, which a real coordinator could not be
 * made to have. A title begins with the rules that the test proves.
 */
import { v7 as uuidv7 } from "uuid";
import type { Answer, Refused } from "../../client/answer.ts";
import { reconcile, type LocalLeases, type ReconcileOptions } from "../reconcile.ts";
import type { LeaseState, RemoteLeasePage, RemoteLeases, RemotePageRequest } from "../remote-leases.ts";
import { dialects } from "./schema.ts";
import type { ConformanceTarget, Suites } from "./target.ts";

interface MemoryLease {
  uuid: string;
  createdAtMs: number;
  renewedAtMs?: number;
  state: LeaseState;
}

type RemoteCall = "list" | "get" | "commit" | "rollback";

/**
 * One cell's leases in memory, like at the coordinator: the first decision is final, and repeating it
 * succeeds.
 */
export class MemoryRemote implements RemoteLeases {
  readonly leases = new Map<string, MemoryLease>();
  readonly calls: { call: RemoteCall; uuid: string }[] = [];
  readonly pages: RemotePageRequest[] = [];
  /**
   * Runs before a call takes effect. It may throw to fail the call, change the leases as another process
   * would, or answer in its place.
   */
  before: (call: RemoteCall, uuid: string) => Answer<LeaseState> | void = () => {};
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  async list(request: RemotePageRequest): Promise<RemoteLeasePage> {
    this.before("list", request.pageToken);
    this.pages.push(request);
    const { pageToken, pageSize, createdAfterMs = 0 } = request;
    const granted = [...this.leases.values()]
      .filter(
        ({ uuid, state, createdAtMs }) =>
          state === "GRANTED" && createdAtMs >= createdAfterMs && uuid > pageToken,
      )
      .toSorted((a, b) => (a.uuid < b.uuid ? -1 : 1));
    const page = granted.slice(0, pageSize);
    const leases = page.map(({ uuid, createdAtMs, renewedAtMs }) => ({
      uuid,
      ageMs: this.#now() - createdAtMs,
      idleMs: this.#now() - (renewedAtMs ?? createdAtMs),
    }));
    return { leases, nextPageToken: granted.length > page.length ? (page.at(-1)?.uuid ?? "") : "" };
  }

  async get(uuid: string): Promise<Answer<LeaseState>> {
    return this.#answer("get", uuid, (lease) => ({ kind: "ok", value: lease.state }));
  }

  async commit(uuid: string): Promise<Answer<LeaseState>> {
    return this.#answer("commit", uuid, (lease) => decide(lease, "COMMITTED"));
  }

  async rollback(uuid: string): Promise<Answer<LeaseState>> {
    return this.#answer("rollback", uuid, (lease) => decide(lease, "ROLLED_BACK"));
  }

  #answer(
    call: RemoteCall,
    uuid: string,
    act: (lease: MemoryLease) => Answer<LeaseState>,
  ): Answer<LeaseState> {
    this.calls.push({ call, uuid });
    const instead = this.before(call, uuid);
    if (instead !== undefined) return instead;
    const lease = this.leases.get(uuid);
    return lease === undefined
      ? refusal({ status: 404, code: "NOT_FOUND", detail: "no such lease" })
      : act(lease);
  }
}

function decide(lease: MemoryLease, outcome: "COMMITTED" | "ROLLED_BACK"): Answer<LeaseState> {
  if (lease.state === "GRANTED") lease.state = outcome;
  if (lease.state === outcome) return { kind: "ok", value: outcome };
  return refusal({
    status: 409,
    code: "FAILED_PRECONDITION",
    reason: `LEASE_${lease.state}`,
    detail: "decided otherwise",
  });
}

export const refusal = (said: Pick<Refused, "status" | "code" | "reason" | "detail">): Refused => ({
  kind: "refused",
  conflicts: [],
  retryable: false,
  outcomeKnown: true,
  ...said,
});

interface LocalWorld {
  local: LocalLeases;
  /** Saves a lease with one row, in a local transaction of its own. Throws if there is a fence. */
  save(uuid: string): Promise<void>;
  /** Makes the lease's row, or the fence in its place, older by `ms`. */
  age(uuid: string, ms: number): Promise<void>;
  /** Returns the leases of the rows in the verification queue. */
  queued(): Promise<string[]>;
  /** Removes all leases and fences. */
  clear(): Promise<void>;
  stop(): Promise<void>;
}

const MINUTE = 60_000;

export function localLeasesSuite(
  { describe, test, expect, beforeAll, beforeEach, afterAll }: Suites,
  name: string,
  start: () => Promise<LocalWorld>,
): void {
  describe(name, () => {
    let world: LocalWorld;
    let remote: MemoryRemote;

    beforeAll(async () => {
      world = await start();
    });
    beforeEach(async () => {
      await world.clear();
      remote = new MemoryRemote(Date.now);
    });
    afterAll(() => world.stop());

    const lease = async ({
      here,
      there,
      state = "GRANTED",
    }: {
      here?: number;
      there?: number;
      state?: LeaseState;
    }): Promise<string> => {
      const uuid = uuidv7();
      if (here !== undefined) {
        await world.save(uuid);
        await world.age(uuid, here * MINUTE);
      }
      if (there !== undefined)
        remote.leases.set(uuid, { uuid, createdAtMs: Date.now() - there * MINUTE, state });
      return uuid;
    };
    const run = async (options: Partial<ReconcileOptions> = {}) =>
      reconcile({ local: world.local, remote, report: () => {} }, options);
    const saved = async (): Promise<string[]> =>
      (await world.local.list({ afterUuid: "", limit: 1_000 })).map(({ uuid }) => uuid);
    const callsOf = (uuid: string): string[] =>
      remote.calls.filter((call) => call.uuid === uuid).map(({ call }) => call);

    test("lists saved leases in the order of their UUIDs, page by page, with ages", async () => {
      const uuids = [];
      for (const minutes of [3, 2, 1]) uuids.push(await lease({ here: minutes }));
      const first = await world.local.list({ afterUuid: "", limit: 2 });
      expect(first.map(({ uuid }) => uuid)).toEqual(uuids.slice(0, 2));
      expect(Math.round((first[0]?.ageMs ?? 0) / MINUTE)).toBe(3);
      const second = await world.local.list({ afterUuid: uuids[1] ?? "", limit: 2 });
      expect(second.map(({ uuid }) => uuid)).toEqual(uuids.slice(2));
      expect(await world.local.list({ afterUuid: uuids[2] ?? "", limit: 2 })).toEqual([]);
      const known = await world.local.has([uuids[0] ?? "", uuidv7()]);
      expect(known.map(({ uuid }) => uuid)).toEqual([uuids[0]]);
      expect(await world.local.has([])).toEqual([]);
      await world.local.remove(uuids[0] ?? "");
      await world.local.remove(uuids[0] ?? "");
      expect(await saved()).toEqual(uuids.slice(1));
    });

    test("[L5] a fence prevents a lease from being saved, is not listed, and is removed later", async () => {
      const uuid = uuidv7();
      expect(await world.local.fence(uuid)).toBe("fenced");
      expect(await world.local.fence(uuid)).toBe("fenced");
      await expect(world.save(uuid)).rejects.toThrow();
      expect(await saved()).toEqual([]);
      expect(await world.local.has([uuid])).toEqual([]);
      await world.local.remove(uuid);
      expect(await world.local.removeFences(MINUTE)).toBe(0);
      await world.age(uuid, 2 * MINUTE);
      expect(await world.local.removeFences(MINUTE)).toBe(1);
      const kept = await lease({ here: 3 });
      expect(await world.local.fence(kept)).toBe("saved");
      expect(await world.local.removeFences(0)).toBe(0);
      expect(await saved()).toEqual([kept]);
    });

    test("[L6] a contradiction moves the lease's rows into the verification queue, once", async () => {
      const uuid = await lease({ here: 1 });
      await world.local.queueForVerification(uuid);
      await world.local.queueForVerification(uuid);
      expect(await world.queued()).toEqual([uuid]);
      expect(await saved()).toEqual([]);
    });

    test("S3: a windowed run decides the remaining leases, and a full run removes the old row", async () => {
      const thresholds = { commitGraceMs: 5 * MINUTE, staleMs: 5 * MINUTE };
      const [a, b, c, d] = [
        await lease({ here: 2, there: 2 }),
        await lease({ there: 2 }),
        await lease({ here: 10, there: 10 }),
        await lease({ there: 10 }),
      ];
      const [e, f] = [
        await lease({ here: 61, there: 61, state: "COMMITTED" }),
        await lease({ here: 1, there: 1, state: "COMMITTED" }),
      ];
      const windowed = await run(thresholds);
      expect(windowed.counters).toEqual({
        processed: 4,
        committed: 1,
        rolledBack: 1,
        pending: 1,
        orphaned: 0,
        contradicted: 0,
        failed: 0,
      });
      expect([a, b, c, d, e, f].map(callsOf)).toEqual([[], [], ["commit"], ["rollback"], [], []]);
      expect(await saved()).toEqual([a, e, f]);
      const full = await run({ ...thresholds, full: true });
      expect(full.counters).toMatchObject({ orphaned: 1, rolledBack: 0, contradicted: 0, failed: 0 });
      expect(callsOf(e)).toEqual(["get"]);
      expect(await saved()).toEqual([a, f]);
    });

    test("S3: 25 pairs in 3 pages, each committed once", async () => {
      const uuids = [];
      for (let count = 0; count < 25; count += 1) uuids.push(await lease({ here: 10, there: 10 }));
      const { counters } = await run({ pageSize: 10 });
      expect(counters).toMatchObject({ processed: 25, committed: 25, failed: 0 });
      expect(remote.pages).toHaveLength(3);
      expect(uuids.every((uuid) => callsOf(uuid).length === 1)).toBe(true);
      expect(await saved()).toEqual([]);
    });

    test("[L5] a lease that was rolled back can never be saved, even with concurrent runs", async () => {
      const uuids = [];
      for (let count = 0; count < 20; count += 1) uuids.push(await lease({ there: 10 }));
      const saves = uuids.map(async (uuid) =>
        world.save(uuid).then(
          () => true,
          () => false,
        ),
      );
      const runs = [run(), run(), run()];
      const [isSaved] = await Promise.all([Promise.all(saves), ...runs]);
      for (const [index, uuid] of uuids.entries()) {
        const state = remote.leases.get(uuid)?.state;
        expect([isSaved[index], state]).not.toEqual([true, "ROLLED_BACK"]);
      }
    });
  });
}

/** The leases in the database of an adapter. */
export async function localWorldOf(target: ConformanceTarget<unknown>): Promise<LocalWorld> {
  const opened = await target.open();
  const { query, stop } = opened;
  const local = opened.database();
  await local.install();
  return {
    local,
    save: async (uuid) => {
      const sources = [{ type: "RAILS_TABLE_USERS", id: uuid }];
      const ran = await local.run((tx) => local.insertLease(tx, { uuid, sources }));
      if (ran.kind !== "committed") throw ran.error;
    },
    age: async (uuid, ms) => void (await query(dialects[target.dialect].age(uuid, ms))),
    queued: async () =>
      (await query("SELECT lease_uuid FROM leasehold_verification_queue")).map((row) =>
        String(row["lease_uuid"]),
      ),
    clear: async () => {
      await query("DELETE FROM leasehold_outstanding_leases");
      await query("DELETE FROM leasehold_verification_queue");
    },
    stop,
  };
}

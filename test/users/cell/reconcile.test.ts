import { beforeEach, describe, expect, it } from "vitest";
import {
  reconcile,
  ReconcileAborted,
  reconcileDefaults,
  type Finding,
  type ReconcileOptions,
} from "../../../src/users/cell/reconcile.ts";
import type { LeaseState } from "../../../src/users/cell/remote-leases.ts";
import { unknown } from "../../../src/users/client/answer.ts";
import { MemoryRemote, refusal } from "../../../src/users/cell/conformance/local-leases.ts";
import { MemoryLocal } from "./memory-leases.ts";

const MINUTE = 60_000;
const NOW = Date.UTC(2026, 10, 20, 12, 30);

let now: number;
let local: MemoryLocal;
let remote: MemoryRemote;
let reported: Finding[];

beforeEach(() => {
  now = NOW;
  local = new MemoryLocal(() => now);
  remote = new MemoryRemote(() => now);
  reported = [];
});

const run = (options: Partial<ReconcileOptions> = {}) =>
  reconcile({ local, remote, report: (finding) => reported.push(finding), nowMs: () => now }, options);

function lease(uuid: string, places: { here?: number; there?: number; state?: LeaseState }): void {
  if (places.here !== undefined) local.rows.set(uuid, { uuid, createdAtMs: NOW - places.here * MINUTE });
  if (places.there !== undefined)
    remote.leases.set(uuid, {
      uuid,
      createdAtMs: NOW - places.there * MINUTE,
      state: places.state ?? "GRANTED",
    });
}

const counters = (some: Record<string, number>) => ({
  processed: 0,
  committed: 0,
  rolledBack: 0,
  pending: 0,
  orphaned: 0,
  contradicted: 0,
  failed: 0,
  ...some,
});
const stateOf = (uuid: string) => remote.leases.get(uuid)?.state;
const callsOf = (uuid: string) => remote.calls.filter((entry) => entry.uuid === uuid).map(({ call }) => call);

describe("scenario S3", () => {
  // Both thresholds of S3 are 5 minutes.
  const s3 = { commitGraceMs: 5 * MINUTE, staleMs: 5 * MINUTE };

  beforeEach(() => {
    lease("a", { here: 2, there: 2 });
    lease("b", { there: 2 });
    lease("c", { here: 10, there: 10 });
    lease("d", { there: 10 });
    // The lease was committed, but its row was not removed.
    lease("e", { here: 61, there: 61, state: "COMMITTED" });
    lease("f", { here: 1 });
  });

  it("a windowed run decides old leases, and no others", async () => {
    const { counters: counted, findings } = await run(s3);
    expect(counted).toEqual(counters({ processed: 4, committed: 1, rolledBack: 1, pending: 1 }));
    expect(findings).toEqual([]);
    expect(remote.calls).toEqual([
      { call: "commit", uuid: "c" },
      { call: "rollback", uuid: "d" },
    ]);
    expect([...local.rows.keys()]).toEqual(["a", "e", "f"]);
    expect([stateOf("a"), stateOf("b"), stateOf("c"), stateOf("d")]).toEqual([
      "GRANTED",
      "GRANTED",
      "COMMITTED",
      "ROLLED_BACK",
    ]);
  });

  it("a full run removes the old row of a committed lease, and keeps the young one", async () => {
    await run(s3);
    remote.calls.length = 0;
    const { counters: counted } = await run({ ...s3, full: true });
    expect(counted).toEqual(counters({ processed: 3, pending: 1, orphaned: 1 }));
    expect(remote.calls).toEqual([{ call: "get", uuid: "e" }]);
    expect([...local.rows.keys()]).toEqual(["a", "f"]);
  });

  it("a full run removes the row of a committed lease once it is 10 minutes old", async () => {
    local.rows.clear();
    lease("g", { here: 9.9, there: 9.9, state: "COMMITTED" });
    lease("h", { here: 10.1, there: 10.1, state: "COMMITTED" });
    expect((await run({ ...s3, full: true })).counters).toMatchObject({ orphaned: 1, contradicted: 0 });
    expect([...local.rows.keys()]).toEqual(["g"]);
  });

  it("reads 250 leases in 3 pages, and commits each once", async () => {
    remote.leases.clear();
    local.rows.clear();
    for (let index = 0; index < 250; index += 1)
      lease(`x${String(index).padStart(3, "0")}`, { here: 10, there: 10 });
    const { counters: counted } = await run(s3);
    expect(counted).toEqual(counters({ processed: 250, committed: 250 }));
    expect(remote.pages).toHaveLength(3);
    expect(new Set(remote.calls.map(({ uuid }) => uuid)).size).toBe(250);
    expect(remote.calls).toHaveLength(250);
    expect(local.rows.size).toBe(0);
  });

  it("reports a commit that throws, keeps its row, and decides the rest", async () => {
    lease("c2", { here: 10, there: 10 });
    remote.before = (call, uuid) => {
      if (call === "commit" && uuid === "c") throw new Error("connection reset");
    };
    const { counters: counted, findings } = await run(s3);
    expect(counted).toEqual(counters({ processed: 5, committed: 1, rolledBack: 1, pending: 1, failed: 1 }));
    expect(findings).toEqual([{ kind: "failed", uuid: "c", step: "commit", error: "connection reset" }]);
    expect(reported).toEqual(findings);
    expect(local.rows.has("c")).toBe(true);
  });

  it("refuses a window that is shorter than the orphan threshold", async () => {
    await expect(run({ windowMs: 9 * MINUTE })).rejects.toMatchObject({
      name: "InvalidArgumentError",
      field: "windowMs",
    });
    expect(reconcileDefaults.windowMs).toBeGreaterThanOrEqual(reconcileDefaults.orphanMs);
  });
});

describe("thresholds", () => {
  it.each([
    { what: "saved, just under the commit grace", here: 0.99, there: 20, state: "GRANTED", row: true },
    { what: "saved, at the commit grace", here: 1, there: 1, state: "COMMITTED", row: false },
    {
      what: "saved long ago, lease young by the coordinator's clock",
      here: 5,
      there: 0,
      state: "COMMITTED",
      row: false,
    },
    {
      what: "saved in the future (the clock was set back), lease old",
      here: -5,
      there: 1,
      state: "COMMITTED",
      row: false,
    },
    { what: "saved in the future, lease young", here: -5, there: 0.5, state: "GRANTED", row: true },
    { what: "not saved, just under stale", there: 9.99, state: "GRANTED", row: false },
    { what: "not saved, at stale", there: 10, state: "ROLLED_BACK", row: false },
  ])("$what: $state", async ({ state, row, ...places }) => {
    lease("x", places);
    await run();
    expect(stateOf("x")).toBe(state);
    expect(local.rows.has("x")).toBe(row);
  });

  it("[C8] leaves a renewed lease alone until it was not renewed for as long as makes it stale", async () => {
    lease("d", { there: 100 });
    const renewed = remote.leases.get("d");
    if (renewed === undefined) throw new Error("no lease");
    renewed.renewedAtMs = NOW - 9.99 * MINUTE;
    expect((await run()).counters).toEqual(counters({ processed: 1, pending: 1 }));
    renewed.renewedAtMs = NOW - 10 * MINUTE;
    expect((await run()).counters).toEqual(counters({ processed: 1, rolledBack: 1 }));
  });

  it("reads leases within the window, unless the run is full", async () => {
    lease("old", { there: 121 });
    expect((await run()).counters.processed).toBe(0);
    expect(remote.pages.at(-1)?.createdAfterMs).toBe(NOW - 120 * MINUTE);
    expect((await run({ full: true })).counters).toEqual(counters({ processed: 1, rolledBack: 1 }));
    expect(remote.pages.at(-1)).not.toHaveProperty("createdAfterMs");
  });

  it("ignores a row without a lease until it is old enough", async () => {
    lease("young", { here: 9.99 });
    expect((await run({ full: true })).counters.processed).toBe(0);
    lease("young", { here: 10 });
    expect((await run({ full: true })).counters.contradicted).toBe(1);
  });
});

describe("fences", () => {
  it("are written before the rollback, so they exist even if it fails", async () => {
    lease("d", { there: 10 });
    remote.before = (call) => (call === "rollback" ? unknown("timeout") : undefined);
    expect((await run()).counters).toEqual(counters({ processed: 1, failed: 1 }));
    expect([...local.fences.keys()]).toEqual(["d"]);
  });

  it.each([
    { what: "was saved in the meantime", meanwhile: () => lease("d", { here: 0 }) },
    { what: "is about to be saved", meanwhile: () => void local.inFlight.add("d") },
  ])("are not written if the lease $what", async ({ meanwhile }) => {
    lease("d", { there: 10 });
    local.before = (call) => {
      if (call === "fence") meanwhile();
    };
    expect(await run()).toEqual({ counters: counters({ processed: 1, pending: 1 }), findings: [] });
    expect(stateOf("d")).toBe("GRANTED");
    expect(local.fences.size).toBe(0);
  });

  it("if a fence cannot be written, the lease is not rolled back", async () => {
    lease("d", { there: 10 });
    local.before = (call) => {
      if (call === "fence") throw new Error("disk full");
    };
    expect((await run()).findings).toEqual([
      { kind: "failed", uuid: "d", step: "fence", error: "disk full" },
    ]);
    expect(stateOf("d")).toBe("GRANTED");
  });

  it("are removed by full runs, when no local transaction can be that old", async () => {
    local.fences.set("old", NOW - reconcileDefaults.fenceMs);
    local.fences.set("young", NOW - reconcileDefaults.fenceMs + 1);
    await run();
    expect(local.fences.size).toBe(2);
    await run({ full: true });
    expect([...local.fences.keys()]).toEqual(["young"]);
  });
});

describe("contradictions", () => {
  it("reports a saved lease that was rolled back, and queues its rows for verification", async () => {
    lease("x", { here: 5, there: 5 });
    // An operator has wrongly rolled the lease back before this run commits it.
    remote.before = (call) => {
      const found = remote.leases.get("x");
      if (call === "commit" && found !== undefined) found.state = "ROLLED_BACK";
    };
    const { counters: counted, findings } = await run();
    expect(counted).toEqual(counters({ processed: 1, contradicted: 1 }));
    expect(findings).toEqual([{ kind: "contradicted", uuid: "x", coordinator: "ROLLED_BACK" }]);
    expect(reported).toEqual(findings);
    expect(local.queued).toEqual(["x"]);
    expect(local.rows.has("x")).toBe(false);
  });

  it("keeps a row that cannot be queued, so that the next run reports it again", async () => {
    lease("x", { here: 61 });
    local.before = (call) => {
      if (call === "queueForVerification") throw new Error("disk full");
    };
    const { counters: counted, findings } = await run({ full: true });
    expect(counted).toEqual(counters({ processed: 1, contradicted: 1, failed: 1 }));
    expect(findings.at(-1)).toEqual({ kind: "failed", uuid: "x", step: "queue", error: "disk full" });
    expect(local.rows.has("x")).toBe(true);
  });

  it("reports an old row whose lease was rolled back or is unknown", async () => {
    lease("rolled", { here: 61, there: 61, state: "ROLLED_BACK" });
    lease("unknown", { here: 61 });
    const { counters: counted, findings } = await run({ full: true });
    expect(counted).toEqual(counters({ processed: 2, contradicted: 2 }));
    expect(findings).toEqual([
      { kind: "contradicted", uuid: "rolled", coordinator: "ROLLED_BACK" },
      { kind: "contradicted", uuid: "unknown", coordinator: "NOT_FOUND" },
    ]);
    expect(local.queued).toEqual(["rolled", "unknown"]);
    expect(callsOf("unknown")).toEqual(["get"]);
  });

  it("reports nothing for a row that was removed in the meantime", async () => {
    lease("x", { here: 61 });
    remote.before = (call) => {
      if (call === "get") local.rows.delete("x");
    };
    expect(await run({ full: true })).toEqual({ counters: counters({ processed: 1 }), findings: [] });
  });

  it("handles a lease with a finding only once per run", async () => {
    lease("x", { here: 90, there: 90 });
    remote.before = (call) => (call === "commit" ? unknown("timeout") : undefined);
    expect((await run({ full: true })).counters).toEqual(counters({ processed: 1, failed: 1 }));
    expect(callsOf("x")).toEqual(["commit"]);
  });

  it("commits an old row whose lease turns out to be granted", async () => {
    lease("x", { here: 90 });
    remote.before = (call) => {
      if (call === "get") lease("x", { there: 90 });
    };
    expect((await run({ full: true })).counters).toEqual(counters({ processed: 1, committed: 1 }));
    expect(local.rows.size).toBe(0);
  });
});

describe("failures", () => {
  it("never treats an unknown outcome as a success or a refusal", async () => {
    lease("c", { here: 5, there: 5 });
    lease("d", { there: 15 });
    lease("e", { here: 90 });
    remote.before = (call) => (call === "list" ? undefined : unknown("timeout"));
    const { counters: counted, findings } = await run({ full: true, concurrency: 1 });
    expect(counted).toEqual(counters({ processed: 3, failed: 3 }));
    expect(
      findings.map((finding) =>
        finding.kind === "failed" ? `${finding.step} ${finding.uuid}` : finding.kind,
      ),
    ).toEqual(["commit c", "rollback d", "get e"]);
    expect([...local.rows.keys()]).toEqual(["c", "e"]);
  });

  it("counts a refusal that is not about the lease as a failure", async () => {
    lease("e", { here: 90 });
    remote.before = (call) =>
      call === "get" ? refusal({ status: 403, code: "PERMISSION_DENIED", detail: "not yours" }) : undefined;
    expect((await run({ full: true })).findings).toEqual([
      { kind: "failed", uuid: "e", step: "get", error: "PERMISSION_DENIED: not yours" },
    ]);
    expect(local.rows.has("e")).toBe(true);
  });

  it("a row that cannot be removed is orphaned in the next full run", async () => {
    lease("c", { here: 61, there: 61 });
    local.before = (call) => {
      if (call === "remove") throw new Error("disk full");
    };
    expect((await run()).counters).toEqual(counters({ processed: 1, committed: 1, failed: 1 }));
    local.before = () => {};
    expect((await run({ full: true })).counters).toEqual(counters({ processed: 1, orphaned: 1 }));
    expect(local.rows.size).toBe(0);
  });

  it("aborts when a page fails: earlier leases stay decided, and no local row is checked", async () => {
    for (const uuid of ["a", "b", "c"]) lease(uuid, { here: 90, there: 90 });
    lease("z", { here: 90, there: 90, state: "COMMITTED" });
    remote.before = (call, pageToken) => {
      if (call === "list" && pageToken === "b") throw new Error("503");
    };
    const aborted = await run({ full: true, pageSize: 2 }).catch((error: unknown) => error);
    expect(aborted).toBeInstanceOf(ReconcileAborted);
    expect(aborted).toMatchObject({
      message: "reconciliation was aborted: 503",
      result: { counters: { processed: 2, committed: 2, orphaned: 0 } },
    });
    expect(callsOf("c")).toEqual([]);
    expect(callsOf("z")).toEqual([]);
    expect([...local.rows.keys()]).toEqual(["c", "z"]);
  });

  it("rolls nothing back if the local table cannot be read", async () => {
    lease("d", { there: 15 });
    local.before = () => {
      throw new Error("no such table");
    };
    await expect(run()).rejects.toThrow(ReconcileAborted);
    expect(remote.calls).toEqual([]);
  });

  it("aborts when a list repeats itself", async () => {
    lease("d", { there: 1 });
    remote.list = async () => ({ leases: [], nextPageToken: "again" });
    await expect(run()).rejects.toThrow("the coordinator answered the same page of leases twice");
    remote.list = async () => ({ leases: [], nextPageToken: "" });
    local.list = async () => [{ uuid: "x", ageMs: 0 }];
    await expect(run({ full: true })).rejects.toThrow(
      "the database answered the same page of local rows twice",
    );
  });

  it.each([{ pageSize: 0 }, { concurrency: 0 }, { staleMs: -1 }, { commitGraceMs: 0.5 }])(
    "refuses %o, and names the option",
    async (options) => {
      const [field] = Object.keys(options);
      await expect(run(options)).rejects.toMatchObject({ name: "InvalidArgumentError", field });
    },
  );
});

describe("concurrent and repeated runs", () => {
  function mixture(): void {
    for (let index = 0; index < 40; index += 1) {
      lease(`saved${index}`, { here: 5, there: 5 });
      lease(`lost${index}`, { there: 15 });
      lease(`left${index}`, { here: 61, there: 61, state: "COMMITTED" });
    }
  }

  it("the second run finds nothing to do", async () => {
    mixture();
    expect((await run({ full: true, pageSize: 7 })).counters).toEqual(
      counters({ processed: 120, committed: 40, rolledBack: 40, orphaned: 40 }),
    );
    const made = remote.calls.length;
    expect((await run({ full: true, pageSize: 7 })).counters).toEqual(counters({}));
    expect(remote.calls).toHaveLength(made);
  });

  it("three concurrent runs have the same result, without a finding", async () => {
    mixture();
    const results = await Promise.all([
      run({ full: true, pageSize: 7 }),
      run({ full: true, pageSize: 11 }),
      run({ full: true, concurrency: 1 }),
    ]);
    expect(results.flatMap(({ findings }) => findings)).toEqual([]);
    expect(local.rows.size).toBe(0);
    for (const { uuid, state } of remote.leases.values())
      expect(state).toBe(uuid.startsWith("lost") ? "ROLLED_BACK" : "COMMITTED");
  });

  it("accepts that another process commits a lease after it was listed", async () => {
    lease("x", { there: 15 });
    local.before = (call) => {
      const found = remote.leases.get("x");
      if (call === "has" && found !== undefined) found.state = "COMMITTED";
    };
    expect(await run()).toEqual({ counters: counters({ processed: 1 }), findings: [] });
    expect(stateOf("x")).toBe("COMMITTED");
  });
});

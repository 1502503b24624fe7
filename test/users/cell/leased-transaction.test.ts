import { describe, expect, test } from "vitest";
import {
  LeasedTransaction,
  type Begun,
  type LeaseEvent,
} from "../../../src/users/cell/leased-transaction.ts";
import { LocalCommitUnknownError, NotSavedError, transactionEnded } from "../../../src/users/cell/errors.ts";
import type { LocalTransactions, TransactionResult } from "../../../src/users/cell/local.ts";
import type { LeaseState } from "../../../src/users/cell/remote-leases.ts";
import { unknown, type Answer } from "../../../src/users/client/answer.ts";
import { LeaseholdError, UnavailableError } from "../../../src/users/client/errors.ts";
import { refusal } from "../../../src/users/cell/conformance/local-leases.ts";
import { MemoryLocal } from "./memory-leases.ts";

const UUID = "01890000-0000-7000-8000-000000000001";
const claimed = { batch: {}, sources: [] };

type Calls = Partial<Record<"commit" | "rollback", Answer<LeaseState>>> & { begin?: Begun };
type Local = Partial<
  Pick<
    LocalTransactions<object>,
    "look" | "fence" | "remove" | "queueForVerification" | "insertLease" | "run"
  >
>;

const granted: Answer<LeaseState> = { kind: "ok", value: "GRANTED" };
const silence = unknown("no answer");
const no = { ...refusal({ status: 409, code: "ALREADY_EXISTS", detail: "1 name is taken" }) };

interface Background {
  isFull?: boolean;
  /** Rollbacks end after this. */
  ends?: Promise<void>;
  /** Gets the work. */
  later?: Promise<void>[];
  events?: LeaseEvent[];
}

/** Runs a transaction, and answers the calls in order, the result and the events. */
async function go(
  calls: Calls = {},
  local: Local = {},
  body: () => object | undefined = () => claimed,
  { isFull = false, ends = Promise.resolve(), later = [], events = [] }: Background = {},
  how: "inTransaction" | "preflight" = "inTransaction",
) {
  const story: string[] = [];
  const memory = new MemoryLocal(Date.now);
  const log = <T>(what: string, work: () => T): T => {
    story.push(what);
    return work();
  };
  const inBackground = (work: (givesUp: AbortSignal) => Promise<void>): boolean => {
    if (isFull) return false;
    later.push(log("background", () => work(new AbortController().signal)));
    return true;
  };
  const answer = (what: "commit" | "rollback", usual: Answer<LeaseState>) => async () => {
    log(what, () => {});
    await ends;
    return calls[what] ?? usual;
  };
  const ports = {
    local: {
      list: (page) => memory.list(page),
      has: (uuids) => memory.has(uuids),
      removeFences: (olderThanMs) => memory.removeFences(olderThanMs),
      run: async <T>(work: (tx: object) => Promise<T>): Promise<TransactionResult<T>> => {
        try {
          return { kind: "committed", value: await work({}) };
        } catch (error) {
          memory.rows.delete(UUID);
          return { kind: "rolled_back", error };
        }
      },
      insertLease: async (_, { uuid }) => void memory.rows.set(uuid, { uuid, createdAtMs: 0 }),
      removeLease: async (_, uuid) => void log("unsave", () => memory.rows.delete(uuid)),
      look: async (uuid) => log("look", () => ({ isSaved: memory.rows.has(uuid), isInTransaction: false })),
      remove: async (uuid) => log("remove", () => memory.remove(uuid)),
      fence: async (uuid) => log("fence", () => memory.fence(uuid)),
      queueForVerification: async (uuid) => log("queue", () => memory.queueForVerification(uuid)),
      ...local,
    } satisfies LocalTransactions<object>,
    leases: {
      begin: async () => log("begin", () => calls.begin ?? granted),
      commit: answer("commit", { kind: "ok", value: "COMMITTED" }),
      rollback: answer("rollback", { kind: "ok", value: "ROLLED_BACK" }),
    },
    inBackground,
    report: (event: LeaseEvent) => void events.push(event),
  };
  const leased = new LeasedTransaction(ports, UUID);
  const value = "the value";
  const running =
    how === "preflight"
      ? leased.preflight(body() as typeof claimed | undefined, async () => value, {})
      : leased.inTransaction(async () => ({ value, claimed: body() as typeof claimed | undefined }), {});
  const ended = await running.catch((error: unknown) => error);
  return {
    ended,
    story: story.join(" "),
    kinds: events.map(({ kind }) => kind),
    isSaved: memory.rows.has(UUID),
    queued: memory.queued,
  };
}

const fails = (): never => {
  throw new Error("the database is away");
};

describe("after COMMIT the caller's transaction succeeds", () => {
  test("[L4] the row is read before the commit, and removed after it", async () => {
    expect(await go()).toEqual({
      ended: "the value",
      story: "begin look commit remove",
      kinds: [],
      isSaved: false,
      queued: [],
    });
  });

  test("if no lease is needed, no row remains", async () => {
    expect(await go({ begin: { kind: "not_needed" } })).toEqual({
      ended: "the value",
      story: "begin unsave",
      kinds: [],
      isSaved: false,
      queued: [],
    });
  });

  test.each([
    {
      what: "the row cannot be read",
      local: { look: async () => fails() },
      story: "begin",
      kinds: ["commit_postponed"],
    },
    {
      what: "another transaction is open around it",
      local: { look: async () => ({ isSaved: true, isInTransaction: true }) },
      story: "begin",
      kinds: ["commit_postponed"],
    },
    {
      what: "the commit gets no answer",
      calls: { commit: silence },
      story: "begin look commit",
      kinds: ["commit_postponed"],
    },
    {
      what: "the key was revoked in the meantime",
      calls: { commit: refusal({ status: 401, code: "UNAUTHENTICATED", detail: "" }) },
      story: "begin look commit",
      kinds: ["commit_postponed"],
    },
    {
      what: "the row cannot be removed",
      local: { remove: async () => fails() },
      story: "begin look commit",
      kinds: ["removal_postponed"],
    },
  ] as { what: string; calls?: Calls; local?: Local; story: string; kinds: string[] }[])(
    "[L4] even if $what",
    async ({ calls, local, story, kinds }) => {
      expect(await go(calls, local)).toEqual({ ended: "the value", story, kinds, isSaved: true, queued: [] });
    },
  );

  test.each([
    {
      coordinator: "ROLLED_BACK",
      commit: refusal({ status: 409, code: "FAILED_PRECONDITION", reason: "LEASE_ROLLED_BACK", detail: "" }),
    },
    { coordinator: "NOT_FOUND", commit: refusal({ status: 404, code: "NOT_FOUND", detail: "" }) },
  ])(
    "[L6] even if its lease is $coordinator, which is reported, and its rows are queued",
    async ({ commit }) => {
      expect(await go({ commit })).toEqual({
        ended: "the value",
        story: "begin look commit queue",
        kinds: ["contradicted"],
        isSaved: false,
        queued: [UUID],
      });
      const unqueued = await go({ commit }, { queueForVerification: async () => fails() });
      expect(unqueued).toMatchObject({ kinds: ["contradicted", "removal_postponed"], isSaved: true });
    },
  );
});

describe("a transaction that failed", () => {
  test("[L2] rolls its lease back at once", async () => {
    const { ended, story, isSaved } = await go({}, { insertLease: async () => fails() });
    expect(ended).toEqual(new Error("the database is away"));
    expect([story, isSaved]).toEqual(["begin rollback", false]);
  });

  test("[L2] [C7] also if the begin, or one attempt of it, had no answer", async () => {
    const unanswered = await go({ begin: silence });
    expect(unanswered.ended).toBeInstanceOf(UnavailableError);
    expect(unanswered.ended).toMatchObject({ leaseUuid: UUID });
    expect(unanswered.story).toBe("begin background rollback");
    const partly = await go({ begin: { ...no, outcomeKnown: false } });
    expect(partly.story).toBe("begin background rollback");
  });

  test("[L2] after a begin without an answer, the caller does not wait for the rollback", async () => {
    const rollback = Promise.withResolvers<void>();
    const later: Promise<void>[] = [];
    const events: LeaseEvent[] = [];
    const background = { ends: rollback.promise, later, events };
    const { ended, kinds } = await go({ begin: silence, rollback: silence }, {}, () => claimed, background);
    expect(ended).toBeInstanceOf(UnavailableError);
    expect(kinds).toEqual([]);
    rollback.resolve();
    await Promise.all(later);
    expect(events).toMatchObject([{ kind: "rollback_postponed" }]);
  });

  test("[L2] reconciliation does what is too much for the background", async () => {
    const { ended, story, kinds } = await go({ begin: silence }, {}, () => claimed, { isFull: true });
    expect(ended).toBeInstanceOf(UnavailableError);
    expect([story, kinds]).toEqual(["begin", ["rollback_postponed"]]);
  });

  test("[L2] but not if the begin was certainly refused, or never sent", async () => {
    const refused = await go({ begin: no });
    expect(refused.ended).toBeInstanceOf(LeaseholdError);
    expect(refused.story).toBe("begin");
    expect((await go({ begin: unknown("not sent", { outcomeKnown: true }) })).story).toBe("begin");
    expect(await go({}, {}, fails)).toMatchObject({ ended: new Error("the database is away"), story: "" });
    expect(await go({}, {}, () => undefined)).toMatchObject({ ended: "the value", story: "" });
  });

  test("reports that its rollback is postponed", async () => {
    expect(await go({ rollback: silence }, { insertLease: async () => fails() })).toMatchObject({
      kinds: ["rollback_postponed"],
    });
  });

  test("a lease that was already decided at the begin fails the transaction", async () => {
    expect(await go({ begin: { kind: "ok", value: "COMMITTED" } })).toMatchObject({
      ended: new Error("the lease was already COMMITTED when it was begun: run the transaction again"),
      isSaved: false,
    });
  });
});

describe("a transaction that its body ended", () => {
  const cause = new TypeError("of the body");
  const local: Local = {
    run: async (work) => {
      await work({});
      return { kind: "ended", error: transactionEnded(cause) };
    },
  };

  test("[L3] after a preflight, whose lease row may be saved, no decision is made", async () => {
    const { ended, story, isSaved } = await go({}, local, () => claimed, {}, "preflight");
    const found = { code: "TRANSACTION_ENDED", outcomeKnown: false, leaseUuid: UUID, cause };
    expect(ended).toMatchObject(found);
    expect([story, isSaved]).toEqual(["begin", true]);
    const unclaimed = await go({}, local, () => undefined, {}, "preflight");
    expect(unclaimed.ended).toMatchObject({ ...found, leaseUuid: undefined });
    expect(unclaimed.story).toBe("");
  });

  test("[L2] otherwise its lease row was not saved before, and its lease is rolled back", async () => {
    const { ended, story } = await go({}, local);
    expect(ended).toMatchObject({ code: "TRANSACTION_ENDED", leaseUuid: undefined, cause });
    expect(story).toBe("begin rollback");
  });
});

describe("a transaction with an uncertain outcome", () => {
  const lost: Local["run"] = async (work) => {
    await work({});
    return { kind: "unknown", error: new Error("connection lost") };
  };

  test("[L3] no decision is made while the outcome is unknown", async () => {
    const { ended, story } = await go({}, { run: lost });
    expect(ended).toBeInstanceOf(LocalCommitUnknownError);
    expect(ended).toMatchObject({ leaseUuid: UUID, outcomeKnown: false });
    expect(story).toBe("begin");
    const unclaimed = await go({}, { run: lost }, () => undefined);
    expect(unclaimed.ended).toMatchObject({ code: "UNKNOWN_COMMIT", leaseUuid: undefined });
  });

  const unsaved: Local = { insertLease: async () => {} };

  test("[L4] [L5] if the row was not saved, the lease is fenced, then rolled back", async () => {
    const { ended, story } = await go({}, unsaved);
    expect(ended).toBeInstanceOf(NotSavedError);
    // The body has ended well, so it caught no error.
    expect(String(ended)).toContain("postgres.js needs the option `prepare: false`");
    expect(story).toBe("begin look fence rollback");
  });

  test("if a reconciliation has already committed the lease, the call succeeds", async () => {
    const { ended, story } = await go(
      {
        rollback: refusal({
          status: 409,
          code: "FAILED_PRECONDITION",
          reason: "LEASE_COMMITTED",
          detail: "",
        }),
      },
      unsaved,
    );
    expect([ended, story]).toEqual(["the value", "begin look fence rollback"]);
  });

  test("a row that only the fence finds: the commit is postponed", async () => {
    const local: Local = { ...unsaved, fence: async () => "saved" };
    expect(await go({}, local)).toMatchObject({
      ended: "the value",
      story: "begin look",
      kinds: ["commit_postponed"],
    });
  });

  test.each([
    { what: "its row is in flight", local: { fence: async () => "in_flight" }, kinds: ["commit_postponed"] },
    {
      what: "the fence cannot be written",
      local: { fence: async () => fails() },
      kinds: ["commit_postponed"],
      cause: new Error("the database is away"),
    },
    {
      what: "the rollback gets no answer",
      calls: { rollback: silence },
      kinds: ["rollback_postponed"],
    },
  ] as { what: string; local?: Local; calls?: Calls; kinds: string[]; cause?: Error }[])(
    "[L3] the outcome is unknown if the row was not found and $what",
    async ({ local, calls, kinds, cause = expect.any(String) as unknown }) => {
      const { ended, kinds: reported } = await go(calls, { ...unsaved, ...local });
      expect(ended).toBeInstanceOf(LocalCommitUnknownError);
      // An error of the database stays what the driver threw.
      expect((ended as Error).cause).toEqual(cause);
      expect(reported).toEqual(kinds);
    },
  );
});

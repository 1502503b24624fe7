import { describe, expect, test } from "vitest";
import { beginAdjusting, type Begun } from "../../../src/users/cell/leased-transaction.ts";
import type { LeaseState } from "../../../src/users/cell/remote-leases.ts";
import type { Answer, Refused } from "../../../src/users/client/answer.ts";
import type { Batch, Conflict } from "../../../src/users/client/api-types.ts";

const claim = (value: string) =>
  ({
    bucket: { type: "ROUTES", value },
    subject: { type: "USER", id: "1" },
    source: { type: "RAILS_TABLE_ROUTES", id: value },
  }) as const;
const conflict = (list: Conflict["list"], index: number, kind: Conflict["kind"]): Conflict => ({
  list,
  index,
  kind,
  bucket: { type: "ROUTES", value: "x" },
});
const refused = (...conflicts: Conflict[]): Refused => ({
  kind: "refused",
  status: 409,
  code: "FAILED_PRECONDITION",
  detail: "no",
  retryable: false,
  outcomeKnown: true,
  conflicts,
});
const granted: Answer<LeaseState> = { kind: "ok", value: "GRANTED" };
const batch: Batch = {
  creates: [claim("new")],
  destroys: [claim("x"), claim("y"), claim("z")],
  replaces: [claim("a"), claim("b"), claim("c")],
};

async function asked(given: Batch, ...answers: Answer<LeaseState>[]) {
  const batches: Batch[] = [];
  const uuids: string[] = [];
  const reported: string[] = [];
  const leases = {
    begin: async (uuid: string, each: Batch): Promise<Answer<LeaseState>> => {
      uuids.push(uuid);
      batches.push(each);
      return answers[batches.length - 1] ?? granted;
    },
  };
  const answer: Begun = await beginAdjusting(leases, "u", given, {}, (conflicts) =>
    reported.push(...conflicts.map(({ kind, index }) => `${kind} ${index}`)),
  );
  return { answer, batches, uuids, reported };
}

describe("a destroy of a claim that is not this row's", () => {
  test("a claim to destroy that belongs to another row is kept and reported", async () => {
    const { answer, batches, reported } = await asked(
      batch,
      refused(conflict("destroys", 0, "not_owner"), conflict("destroys", 2, "mismatch")),
    );
    expect(answer).toEqual(granted);
    expect(batches[1]).toEqual({ ...batch, destroys: [claim("y")] });
    expect(reported).toEqual(["not_owner 0", "mismatch 2"]);
  });

  test("no lease is needed if no ops remain", async () => {
    const { answer, batches } = await asked(
      { destroys: [claim("x")], allow_missing: true },
      refused(conflict("destroys", 0, "not_owner")),
    );
    expect(answer).toEqual({ kind: "not_needed" });
    expect(batches).toHaveLength(1);
  });

  test("conflicts of the second attempt have the indexes of the first batch", async () => {
    const first = refused(conflict("destroys", 1, "mismatch"));
    const again = refused(
      conflict("replaces", 2, "leased"),
      conflict("creates", 0, "taken"),
      conflict("destroys", 1, "leased"),
    );
    const { answer } = await asked(batch, first, again);
    const places = (answer as Refused).conflicts.map(({ list, index }) => `${list} ${index}`);
    expect(places).toEqual(["replaces 2", "creates 0", "destroys 2"]);
  });

  test.each([
    {
      what: "an additional conflict",
      first: refused(conflict("destroys", 0, "mismatch"), conflict("creates", 0, "taken")),
    },
    { what: "a leased name to destroy", first: refused(conflict("destroys", 0, "leased")) },
    { what: "a claim of another cell to replace", first: refused(conflict("replaces", 0, "not_owner")) },
    { what: "a refusal without a conflict", first: refused() },
    {
      what: "an earlier attempt without an answer",
      first: { ...refused(conflict("destroys", 0, "mismatch")), outcomeKnown: false },
    },
    { what: "a grant", first: granted },
  ])("the batch is not adjusted after $what", async ({ first }) => {
    const { answer, batches } = await asked(batch, first);
    expect(answer).toEqual(first);
    expect(batches).toHaveLength(1);
  });
});

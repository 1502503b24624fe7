import { DrizzleQueryError } from "drizzle-orm";
import { expect, test } from "vitest";
import { reasonOf } from "../../../src/users/cell/causes.ts";
import { LocalCommitUnknownError } from "../../../src/users/cell/errors.ts";

test("an error of drizzle says what its driver says, and no values of the statement", () => {
  const lost = new Error("Connection terminated unexpectedly");
  const wrapped = new DrizzleQueryError("delete from users where email = $1", ["ada@x.io"], lost);
  expect(reasonOf(wrapped)).toBe("Connection terminated unexpectedly");
  expect(new LocalCommitUnknownError(wrapped, undefined).message).toBe(
    "it is unknown whether the local transaction was saved: Connection terminated unexpectedly. " +
      "Read the rows again",
  );
  expect(reasonOf(lost)).toBe("Connection terminated unexpectedly");
  expect(reasonOf(new Error("outer", { cause: lost }))).toBe("outer");
  expect(reasonOf("text")).toBe("text");
});

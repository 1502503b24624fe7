/** Errors of a begin with the columns that they are about. */
import { expect, test, vi } from "vitest";
import type { Conflict } from "../../../src/users/client/api-types.ts";
import {
  AlreadyClaimedError,
  CellFrozenError,
  InvalidArgumentError,
  TimeoutError,
} from "../../../src/users/client/errors.ts";
import { namingFields, toValidationErrors } from "../../../src/users/cell/validation.ts";

const origin = (attribute: string, id = "7") => ({ table: "users", attribute, id });
const origins = {
  creates: [origin("username"), origin("email"), origin("path"), origin("slug"), origin("handle")],
  destroys: [],
  replaces: [],
};
/** For errors that a user can correct. */
const nobody = (): never => {
  throw new Error("no operator is needed");
};
const conflict = (index: number, kind: Conflict["kind"]): Conflict => ({
  list: "creates",
  index,
  kind,
  bucket: { type: "ROUTES", value: "x" },
});

test("the message and `field` name the columns, and everything else stays", () => {
  const details = {
    code: "ALREADY_EXISTS",
    reason: "A_REASON",
    status: 409,
    conflicts: [conflict(0, "taken"), conflict(1, "leased"), conflict(2, "mismatch")],
    requestId: "r1",
    leaseUuid: "u1",
    retryAfterMs: 7,
    retryable: true,
    outcomeKnown: false,
    cause: new Error("a cause"),
  };
  const error = namingFields(new AlreadyClaimedError("3 names", details), origins, nobody);
  expect(error).toBeInstanceOf(AlreadyClaimedError);
  expect({ ...error, cause: error.cause }).toEqual({
    ...details,
    name: "AlreadyClaimedError",
    field: "username",
  });
  expect(error.message).toBe(
    "`username` of users 7 is already claimed, `email` of users 7 is being changed by another transaction, " +
      "`path` of users 7 is not claimed as the row says, which verification repairs",
  );
  expect(toValidationErrors(error).map(({ field, problem }) => `${field}: ${problem}`)).toEqual([
    "username: taken",
    "email: try_again",
    "path: failed",
  ]);
});

test("a long list is shortened in the message only", () => {
  const conflicts = origins.creates.map((_, index) => conflict(index, "taken"));
  const error = namingFields(
    new AlreadyClaimedError("5 names", { code: "ALREADY_EXISTS", conflicts }),
    origins,
    nobody,
  );
  expect(error.message).toMatch(/`path` of users 7 is already claimed, and 2 more$/);
  expect(toValidationErrors(error)).toHaveLength(5);
});

test("an invalid value keeps what the coordinator says about it", () => {
  const refused = new InvalidArgumentError("`creates[1].bucket.value`: two scripts", {
    code: "INVALID_ARGUMENT",
    field: "creates[1].bucket.value",
  });
  const error = namingFields(refused, origins, nobody);
  expect(error).toMatchObject({ name: "InvalidArgumentError", field: "email" });
  expect(error.message).toBe("`email` of users 7: two scripts");
});

test("an error that is about no field, or about all, stays as it is", () => {
  const late = new TimeoutError("late", { code: "DEADLINE_EXCEEDED", retryable: true, outcomeKnown: false });
  const frozen = new CellFrozenError("frozen", { code: "FAILED_PRECONDITION" });
  for (const error of [late, frozen]) {
    expect(namingFields(error, origins, nobody)).toBe(error);
    expect(toValidationErrors(error)).toHaveLength(5);
  }
  const odd = new InvalidArgumentError("body", { code: "INVALID_ARGUMENT", field: "body" });
  const needsOperator = vi.fn();
  expect(namingFields(odd, origins, needsOperator)).toBe(odd);
  expect(needsOperator).toHaveBeenCalledOnce();
  expect(toValidationErrors(odd)).toEqual([]);
});

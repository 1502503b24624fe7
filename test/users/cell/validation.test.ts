import { expect, test } from "vitest";
import {
  BulkError,
  InvalidNameError,
  LocalCommitUnknownError,
  rememberFields,
} from "../../../src/users/cell/errors.ts";
import { fieldsOfBegin, toValidationErrors } from "../../../src/users/cell/validation.ts";
import * as errors from "../../../src/users/client/errors.ts";
import type { Conflict } from "../../../src/users/client/api-types.ts";

const origin = (attribute: string) => ({ table: "users", attribute, id: "7" });
const origins = {
  creates: [origin("username"), origin("email")],
  destroys: [origin("old")],
  replaces: [origin("path")],
};
const conflict = (list: Conflict["list"], index: number, kind: Conflict["kind"]): Conflict => ({
  list,
  index,
  kind,
  bucket: { type: "ROUTES", value: "x" },
});

const {
  AlreadyClaimedError,
  ClaimLeasedError,
  ClaimMismatchError,
  InvalidArgumentError,
  LeaseholdError,
  TimeoutError,
} = errors;

const fieldErrors = (error: errors.LeaseholdError): string[] => {
  rememberFields(error, fieldsOfBegin(error, origins) ?? []);
  return toValidationErrors(error).map(({ field, problem }) => `${field}: ${problem}`);
};

test("each conflict becomes an error of its field", () => {
  const conflicts = [
    conflict("creates", 1, "taken"),
    conflict("creates", 0, "leased"),
    conflict("destroys", 0, "mismatch"),
    conflict("replaces", 0, "not_owner"),
  ];
  expect(fieldErrors(new AlreadyClaimedError("", { code: "ALREADY_EXISTS", conflicts }))).toEqual([
    "email: taken",
    "username: try_again",
    "old: failed",
    "path: taken",
  ]);
  expect(
    fieldErrors(
      new ClaimMismatchError("", {
        code: "FAILED_PRECONDITION",
        conflicts: [conflict("creates", 9, "taken")],
      }),
    ),
  ).toEqual([]);
});

test("a field of one row is listed once, with the problem that a retry does not solve", () => {
  // Two concurrent renames: the lease of the other one holds both the old and the new name.
  const conflictsOf = (kind: Conflict["kind"]): Conflict[] => [
    conflict("creates", 0, "leased"),
    conflict("destroys", 0, "leased"),
    conflict("replaces", 0, kind),
  ];
  const renamed = {
    creates: [origin("username")],
    destroys: [origin("username")],
    replaces: [origin("username"), { ...origin("username"), id: "8" }],
  };
  const problemsOf = (conflicts: Conflict[]): string[] => {
    const error = new ClaimLeasedError("", { code: "ABORTED", conflicts, retryable: true });
    rememberFields(error, fieldsOfBegin(error, renamed) ?? []);
    return toValidationErrors(error).map(({ field, id, problem }) => `${field} of ${id}: ${problem}`);
  };
  expect(problemsOf(conflictsOf("leased"))).toEqual(["username of 7: try_again"]);
  expect(problemsOf(conflictsOf("taken"))).toEqual(["username of 7: taken"]);
  expect(problemsOf(conflictsOf("mismatch"))).toEqual(["username of 7: failed"]);
  expect(problemsOf([conflict("replaces", 1, "leased"), conflict("creates", 0, "taken")])).toEqual([
    "username of 8: try_again",
    "username of 7: taken",
  ]);
});

test("an invalid value is an error of its field, whether the SDK or the coordinator refused it", () => {
  expect(
    fieldErrors(new InvalidArgumentError("", { code: "INVALID_ARGUMENT", field: "creates[1].bucket.value" })),
  ).toEqual(["email: invalid"]);
  expect(toValidationErrors(new InvalidNameError(origin("path"), "cannot be claimed"))).toEqual([
    { table: "users", field: "path", id: "7", problem: "invalid" },
  ]);
  // A bug of the application, which the user of a form cannot correct.
  expect(
    toValidationErrors(new InvalidArgumentError("", { code: "INVALID_ARGUMENT", field: "transaction" })),
  ).toEqual([]);
});

test("only the value of a new name can be the mistake of a user", () => {
  const meant = (field: string) =>
    fieldsOfBegin(new InvalidArgumentError("", { code: "INVALID_ARGUMENT", field }), origins);
  expect(meant("replaces[0].bucket.value")).toMatchObject([{ field: "path", problem: "invalid" }]);
  for (const field of [
    "creates[0].bucket.type",
    "creates[0].subject.type",
    "creates[0].subject.id",
    "creates[0].source.type",
    "creates[0].source.id",
    "creates[0].scope",
    "creates[0].bucket",
    "creates[0]",
    "creates[9].bucket.value",
    "destroys[0].bucket.value",
    "wait_ms",
    "body",
    "",
  ])
    expect(meant(field), field).toBeUndefined();
});

test("each error of a begin is shown at all fields, or at none, or needs an operator", () => {
  const all = (problem: string) => ["username", "email", "path"].map((field) => `${field}: ${problem}`);
  const details = { code: "A_CODE", retryable: false };
  const shown: Partial<Record<errors.LeaseholdErrorName, unknown>> = {};
  const isClass = (value: unknown): value is typeof LeaseholdError =>
    typeof value === "function" && value.prototype instanceof Error;
  for (const ErrorClass of Object.values(errors).filter(isClass)) {
    const error = new ErrorClass("", details);
    shown[error.name] = fieldsOfBegin(error, origins)?.map(({ field, problem }) => `${field}: ${problem}`);
  }
  const [nothing, operator] = [[], undefined];
  expect(shown).toEqual({
    UnavailableError: all("try_again"),
    TimeoutError: all("try_again"),
    LeaseRolledBackError: all("try_again"),
    CellFrozenError: all("failed"),
    CellDrainingError: all("failed"),
    CancelledError: nothing,
    StaleEpochError: nothing,
    ReportPrunedError: nothing,
    ChangesPrunedError: nothing,
    LeaseholdError: operator,
    InvalidArgumentError: operator,
    UnauthenticatedError: operator,
    PermissionDeniedError: operator,
    NotFoundError: operator,
    AlreadyClaimedError: operator,
    ClaimLeasedError: operator,
    FailedPreconditionError: operator,
    NotOwnerError: operator,
    ClaimMismatchError: operator,
    LeaseCommittedError: operator,
    LeaseIdReusedError: operator,
    ResourceExhaustedError: operator,
  });
  for (const ErrorClass of [errors.ResourceExhaustedError, LeaseholdError])
    expect(fieldErrors(new ErrorClass("", { code: "A_CODE", retryable: true }))).toEqual(all("try_again"));
  const late = new TimeoutError("", { code: "DEADLINE_EXCEEDED", retryable: true, outcomeKnown: false });
  expect(fieldErrors(late)).toEqual(all("try_again"));
});

test("an unknown outcome of COMMIT is no error of a field, because the rows may be saved", () => {
  const lost = new LocalCommitUnknownError(new Error("connection lost"), "u1");
  expect(fieldErrors(lost)).toEqual([]);
  expect(toValidationErrors(new BulkError(lost, { recordsDone: 0, chunksDone: 0 }))).toEqual([]);
});

test("the error of a chunk is converted like its cause", () => {
  const cause = new AlreadyClaimedError("", {
    code: "ALREADY_EXISTS",
    conflicts: [conflict("creates", 1, "taken")],
  });
  rememberFields(cause, fieldsOfBegin(cause, origins) ?? []);
  expect(toValidationErrors(new BulkError(cause, { recordsDone: 0, chunksDone: 0 }))).toMatchObject([
    { field: "email", problem: "taken" },
  ]);
});

test("an error without a field has no field errors", () => {
  expect(toValidationErrors(new RangeError("a bug"))).toEqual([]);
  expect(toValidationErrors(new AlreadyClaimedError("", { code: "ALREADY_EXISTS" }))).toEqual([]);
});

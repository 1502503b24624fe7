import { describe, expect, test } from "vitest";
import {
  isAbort,
  isDuplicateKey,
  isInsideTransaction,
  isLockConflict,
  isMissingSavepoint,
} from "../../../../src/users/cell/mysql/failure.ts";

const serverError = (errno: number): Error => Object.assign(new Error("no"), { errno, sqlState: "HY000" });
/** Wraps an error as drizzle does. */
const wrapped = (cause: Error): Error => new Error("Failed query: commit", { cause });

describe("an answer to COMMIT", () => {
  test.each([1205, 1213, 1290, 3101])("%i means that nothing was saved", (errno) => {
    expect(isAbort(serverError(errno))).toBe(true);
    expect(isAbort(wrapped(serverError(errno)))).toBe(true);
  });

  test.each([1047, 1053, 1180, 1317, 1927, 2006, 2013, 3100])("%i proves nothing", (errno) => {
    expect(isAbort(wrapped(serverError(errno)))).toBe(false);
  });

  test("errors that don't come from the server prove nothing", () => {
    expect(isAbort(Object.assign(new Error("read ECONNRESET"), { errno: -104, code: "ECONNRESET" }))).toBe(
      false,
    );
    expect(isAbort(Object.assign(new Error("no SQLSTATE"), { errno: 1213 }))).toBe(false);
    expect(isAbort(new Error("Can't add new command when connection is in closed state"))).toBe(false);
    expect(isAbort("1213")).toBe(false);
    expect(isAbort(undefined)).toBe(false);
  });
});

test("errors are recognized by number inside drizzle's wrapper", () => {
  const kinds = { isDuplicateKey, isInsideTransaction, isLockConflict, isMissingSavepoint };
  const kindsOf = (errno: number): string[] =>
    Object.entries(kinds).flatMap(([name, is]) =>
      is(wrapped(serverError(errno))) && is(serverError(errno)) ? [name] : [],
    );
  expect([1062, 1205, 1213, 1305, 1568, 1064].map(kindsOf)).toEqual([
    ["isDuplicateKey"],
    ["isLockConflict"],
    ["isLockConflict"],
    ["isMissingSavepoint"],
    ["isInsideTransaction"],
    [],
  ]);
});

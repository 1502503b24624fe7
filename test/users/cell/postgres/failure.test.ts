import { expect, test } from "vitest";
import { isAbort, isLockTimeout } from "../../../../src/users/cell/postgres/failure.ts";

const errorOf = (code: string, severity?: string): Error =>
  new Error("Failed query: commit", {
    cause: Object.assign(new Error("no"), { code, ...(severity === undefined ? {} : { severity }) }),
  });

test("an ERROR of COMMIT means that nothing was saved, except for some classes", () => {
  expect(["23505", "40001", "40P01"].map((code) => isAbort(errorOf(code, "ERROR")))).toEqual([
    true,
    true,
    true,
  ]);
  expect(["08006", "40003", "57014", "XX000"].map((code) => isAbort(errorOf(code, "ERROR")))).toEqual([
    false,
    false,
    false,
    false,
  ]);
  expect(isAbort(errorOf("23505", "FATAL"))).toBe(false);
});

test("errors of the connection prove nothing, even if their codes look like the server's", () => {
  expect(["EPIPE", "EBADF", "ECONNRESET"].map((code) => isAbort(errorOf(code)))).toEqual([
    false,
    false,
    false,
  ]);
});

test("a lock timeout is recognized by its code", () => {
  expect(["55P03", "23505"].map((code) => isLockTimeout(errorOf(code, "ERROR")))).toEqual([true, false]);
});

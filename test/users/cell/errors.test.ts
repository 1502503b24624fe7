import { DrizzleQueryError } from "drizzle-orm";
import { expect, onTestFinished, test } from "vitest";
import { BulkError, CallSite, LocalCommitUnknownError, reasonOf } from "../../../src/users/cell/errors.ts";

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

const done = { recordsDone: 2, chunksDone: 1 };

test("a chunk with an unknown outcome is not reported as unsaved", () => {
  const lease = "00000000-0000-7000-8000-000000000001";
  expect(new BulkError(new LocalCommitUnknownError("connection lost", lease), done)).toMatchObject({
    code: "UNKNOWN_COMMIT",
    outcomeKnown: false,
    leaseUuid: lease,
  });
});

test("an error of the application has no conflicts and a known outcome", () => {
  expect(new BulkError(new Error("no"), done)).toMatchObject({
    code: "BULK_FAILED",
    outcomeKnown: true,
    conflicts: [],
    leaseUuid: undefined,
  });
});

class Service {
  site(): CallSite {
    return new CallSite(this, "site");
  }
}

/** Calls the service from a function with a name that stacks show. */
function caller(): CallSite {
  return new Service().site();
}

const failed = (): Error => new RangeError("no");

test("the call is shown instead of the frames inside, or below them", () => {
  const site = caller();
  const error = failed();
  const own = error.stack ?? "";
  site.showIn(error, { instead: false });
  expect(error.stack).toContain(`${own}\n    at caller (`);
  expect(error.stack).not.toContain("Service.site");
  const twice = error.stack;
  site.showIn(error, { instead: false });
  expect(error.stack).toBe(twice);
  site.showIn(error, { instead: true });
  expect(error.stack).toMatch(/^RangeError: no\n {4}at caller \(/);
});

test("a replaced method is found too", () => {
  const service = new Service();
  const site = service.site.bind(service);
  service.site = function replaced() {
    return site();
  };
  const error = failed();
  (function inApplication() {
    service.site().showIn(error, { instead: true });
  })();
  expect(error.stack).toMatch(/^RangeError: no\n {4}at inApplication \(/);
});

test("an engine that cannot capture stacks leaves the error as it is", () => {
  const original = Object.getOwnPropertyDescriptor(Error, "captureStackTrace") ?? {};
  onTestFinished(() => void Object.defineProperty(Error, "captureStackTrace", original));
  Reflect.deleteProperty(Error, "captureStackTrace");
  const site = caller();
  const error = failed();
  const { stack } = error;
  for (const instead of [true, false]) site.showIn(error, { instead });
  expect(error.stack).toBe(stack);
});

/** The caller's line in the stacks of errors. */
import { expect, onTestFinished, test } from "vitest";
import { CallSite } from "../../../src/users/cell/call-site.ts";

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

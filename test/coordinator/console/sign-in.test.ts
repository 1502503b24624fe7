import { expect, test } from "vitest";
import { SignInLimit } from "../../../src/coordinator/console/sign-in.ts";

test("a window lasts a minute from its first failure", () => {
  const limit = new SignInLimit();
  for (let n = 0; n < 10; n += 1) limit.failed("a", n * 1_000);
  expect(limit.waitS("a", 20_000)).toBe(40);
  expect(limit.waitS("b", 20_000)).toBeUndefined();
  expect(limit.waitS(null, 20_000)).toBeUndefined();
  expect(limit.waitS("a", 60_000)).toBeUndefined();
  limit.failed("a", 60_000);
  expect(limit.waitS("a", 60_000)).toBeUndefined();
});

test("many addresses keep nobody out, and only a thousand are counted", () => {
  const limit = new SignInLimit();
  for (let n = 0; n < 1_000; n += 1) limit.failed(`address-${n}`, 0);
  expect([limit.waitS("another", 1_000), limit.waitS(null, 1_000)]).toEqual([undefined, undefined]);
  for (let n = 0; n < 10; n += 1) limit.failed("another", 1_000);
  for (let n = 0; n < 9; n += 1) limit.failed("address-0", 1_000);
  expect([limit.waitS("another", 2_000), limit.waitS("address-0", 2_000)]).toEqual([undefined, 58]);
});

/** What the expectations of checks accept, and what they say about anything else. */
import { expect, test } from "vitest";
import type { Received } from "../../../src/users/conformance/api.ts";
import {
  expectEqual,
  expectFields,
  expectRefusal,
  expectStatus,
  Nonconformity,
} from "../../../src/users/conformance/nonconformity.ts";

const received = (status: number, json: unknown, type = "application/problem+json"): Received => ({
  method: "GET",
  path: "/x",
  status,
  header: (name) => (name === "content-type" ? type : null),
  bytes: new Uint8Array(),
  text: JSON.stringify(json) ?? "",
  json,
  isRepeated: false,
});

const complaint = (work: () => void): string | undefined => {
  try {
    work();
  } catch (error) {
    expect(error).toBeInstanceOf(Nonconformity);
    return (error as Error).message;
  }
  return undefined;
};

const difference = (actual: unknown, expected: object): string | undefined =>
  complaint(() => expectFields(received(200, actual), expected))
    ?.split("; ")
    .slice(1)
    .join("; ");

test("only the fields that are expected are compared", () => {
  expect(difference({ a: 1, b: { c: [{ d: 2 }, 3], e: null } }, { b: { c: [{ d: 2 }, 3] } })).toBeUndefined();
  expect(difference({ a: 1 }, { a: undefined })).toBe("a is 1; expected none");
  expect(difference({ a: { b: [1, 2] } }, { a: { b: [1, 3] } })).toBe("a.b[1] is 2; expected 3");
  expect(difference({ a: [1, 2] }, { a: [1] })).toBe("a has 2 items; expected 1");
  expect(difference({ a: "x" }, { a: [] })).toBe('a is "x"');
  expect(difference({}, { a: { b: 1 } })).toBe("a is absent");
  expect(difference({}, { a: null })).toBe("a is absent; expected null");
  expect(difference(undefined, { a: 1 })).toBe("the body is absent");
});

test("values are compared by their kind", () => {
  expect(complaint(() => expectEqual(["a", { b: 1 }], ["a", { b: 1 }], "it"))).toBeUndefined();
  expect(complaint(() => expectEqual("1", 1, "it"))).toBe('it is "1"; expected 1');
  expect(complaint(() => expectEqual(null, {}, "it"))).toBe("it is null");
});

test("a status is one of those that are expected, and the call is named", () => {
  expect(complaint(() => expectStatus(received(201, {}), 200, 201))).toBeUndefined();
  expect(complaint(() => expectStatus(received(500, { a: 1 }), 200, 201))).toBe(
    'GET /x answered 500 {"a":1}; expected 200 or 201',
  );
  const long = complaint(() => expectStatus(received(500, "x".repeat(9_999)), 200)) ?? "";
  expect(long.length).toBeLessThan(400);
});

test("a refusal has the code and the media type of problems", () => {
  const problem = { code: "NOT_FOUND", detail: "x" };
  expect(complaint(() => expectRefusal(received(404, problem), 404, { code: "NOT_FOUND" }))).toBeUndefined();
  expect(complaint(() => expectRefusal(received(404, {}), 404, { code: "NOT_FOUND" }))).toContain(
    "code is absent",
  );
  const plain = received(404, problem, "application/json");
  expect(complaint(() => expectRefusal(plain, 404, { code: "NOT_FOUND" }))).toContain(
    "a refusal must be application/problem+json, and is application/json",
  );
});

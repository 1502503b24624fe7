import { expect, test } from "vitest";
import { LocalCommitUnknownError } from "../../../src/users/cell/errors.ts";
import { messageOf, unknownFrom } from "../../../src/users/client/answer.ts";

const withoutText: unknown = Object.create(null);

test.each([
  { what: "an error", thrown: new TypeError("fetch failed"), message: "fetch failed" },
  { what: "a string", thrown: "no", message: "no" },
  {
    what: "an object that has no text",
    thrown: withoutText,
    message: "something was thrown that cannot be shown as text",
  },
])("the message of $what", ({ thrown, message }) => {
  expect(messageOf(thrown)).toBe(message);
  expect(unknownFrom(thrown)).toMatchObject({ kind: "unknown", error: message, outcomeKnown: false });
});

test("[L4] an unknown local COMMIT stays unknown, whatever the driver threw", () => {
  expect(new LocalCommitUnknownError(withoutText, undefined)).toMatchObject({ outcomeKnown: false });
});

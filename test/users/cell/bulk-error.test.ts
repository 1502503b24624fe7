import { expect, test } from "vitest";
import { BulkError, LocalCommitUnknownError } from "../../../src/users/cell/errors.ts";

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

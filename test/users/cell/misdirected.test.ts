import { describe, expect, test } from "vitest";
import { misdirected, misdirectedResponse } from "../../../src/users/cell/misdirected.ts";

describe("a cell that does not have a name", () => {
  test("answers 421 to a router, with the epoch at which it gave the name up", async () => {
    const answer = misdirected({ "leasehold-cell": "7" }, { epoch: 12 });
    expect(answer).toMatchObject({
      status: 421,
      headers: {
        "content-type": "application/problem+json",
        "cache-control": "no-store",
        "leasehold-epoch": "12",
      },
    });
    expect(JSON.parse(answer?.body ?? "")).toMatchObject({ status: 421, title: "Misdirected Request" });
    const response = misdirectedResponse(new Headers({ "Leasehold-Cell": "7" }));
    expect([response?.status, response?.headers.get("cache-control")]).toEqual([421, "no-store"]);
    expect(response?.headers.has("leasehold-epoch")).toBe(false);
    expect(await response?.json()).toMatchObject({ status: 421 });
  });

  test("has no 421 for a client that did not come through a router", () => {
    expect(misdirected({ host: "cell-7.example.com", "leasehold-cell": undefined })).toBeUndefined();
    expect(misdirected(new Headers())).toBeUndefined();
    expect(misdirectedResponse({})).toBeUndefined();
  });

  test("cannot send an epoch that is not a whole number", () => {
    for (const epoch of [-1, 1.5, Number.NaN, "1" as never])
      expect(() => misdirected({ "leasehold-cell": "7" }, { epoch })).toThrow(
        "`epoch` must be a whole number",
      );
  });
});

import { describe, expect, it } from "vitest";
import type { Bucket } from "../../../src/users/client/index.ts";
import { errorOf, fakeClient, problem, unavailable } from "./fake.ts";

const claims: Bucket[] = [
  { type: "ROUTES", value: "a/b" },
  { type: "ROUTES", value: "a" },
];

describe("classify", () => {
  it("returns the host of the cell, and the claim that decided", async () => {
    const json = { action: "PROXY", proxy: { address: "cell-7.test" }, matched_claim: claims[1] };
    const { client, sent } = fakeClient([{ status: 200, json }]);
    expect(await client.routing.classify({ claims })).toEqual({
      address: "cell-7.test",
      matchedClaim: claims[1],
    });
    expect(sent).toMatchObject([{ method: "POST", url: "http://leasehold.test/v1/classify" }]);
    expect(JSON.parse(sent[0]?.body ?? "")).toEqual({ claims });
  });

  it("has no claim if a type decides", async () => {
    const { client, sent } = fakeClient([
      { status: 200, json: { action: "PROXY", proxy: { address: "cell-7.test" } } },
    ]);
    expect(await client.routing.classify({ type: "SESSION_PREFIX", value: "cell-7" })).toEqual({
      address: "cell-7.test",
      matchedClaim: undefined,
    });
    expect(JSON.parse(sent[0]?.body ?? "")).toEqual({ type: "SESSION_PREFIX", value: "cell-7" });
  });

  it("returns undefined if no claim exists", async () => {
    const { client } = fakeClient([problem(404, "NOT_FOUND")]);
    expect(await client.routing.classify({ claims })).toBeUndefined();
  });

  it.each([
    ["a part that cannot be reached", unavailable],
    ["a proxy's 404", { status: 404, text: "<html>", headers: { "content-type": "text/html" } }],
    ["an answer without an address", { status: 200, json: { action: "PROXY" } }],
  ])("throws for %s, because the cell is not known", async (_, reply) => {
    const { client } = fakeClient([reply], { retries: 0 });
    await errorOf(client.routing.classify({ claims }));
  });
});

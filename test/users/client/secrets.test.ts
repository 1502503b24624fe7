import { describe, expect, it } from "vitest";
import { createClient, InvalidArgumentError, type Fetch } from "../../../src/users/client/index.ts";
import { errorOf, fakeClient, UUID } from "./fake.ts";

const SECRET = "lhk_secret";

describe("errors and hooks", () => {
  it("never contain the key, even one that cannot be a header", async () => {
    for (const key of [`${SECRET}\n${SECRET}`, `${SECRET}\u0000`, ` ${SECRET}`, ""]) {
      const failed = await errorOf(
        Promise.resolve().then(() => createClient({ url: "http://x.test", key, cell: "1" })),
      );
      expect(failed).toBeInstanceOf(InvalidArgumentError);
      expect(failed.message).not.toContain("secret");
    }
    const reasons: string[] = [];
    const hooks = { onRetry: ({ error }: { error: string }) => void reasons.push(error) };
    const { client, sent } = fakeClient([], { key: () => `${SECRET}\n`, retries: 1, hooks });
    const error = await errorOf(client.leases.commit(UUID));
    expect(error).toMatchObject({ code: "UNAVAILABLE", outcomeKnown: true });
    expect(sent).toEqual([]);
    expect(`${error.message} ${reasons.join(" ")}`).not.toContain("secret");
  });

  it("never contain a name", async () => {
    const { client } = fakeClient([new TypeError("fetch failed")], { retries: 0 });
    const error = await errorOf(client.records.find({ type: "EMAILS", value: "ada@private.example" }));
    expect(error.message).toBe("getRecord: TypeError: fetch failed");
    expect((await errorOf(client.records.find({ type: "EMAILS", value: ".." }))).message).not.toContain("..");
  });
});

it("ends at its deadline even if the given fetch ignores its signal", async () => {
  const deaf: Fetch = () => new Promise(() => {});
  const { client } = fakeClient([], { fetch: deaf, deadlineMs: 30, retries: 0 });
  expect(await errorOf(client.leases.commit(UUID))).toMatchObject({
    code: "DEADLINE_EXCEEDED",
    outcomeKnown: false,
  });
});

it("does not let added headers replace its own", async () => {
  const { client, sent } = fakeClient([new TypeError("fetch failed")], {
    retries: 0,
    headers: () => ({ Authorization: "other", "X-Trace": "1" }),
  });
  await errorOf(client.leases.commit(UUID));
  expect(sent[0]?.headers).toEqual({
    authorization: "Bearer secret",
    accept: "application/json",
    "x-trace": "1",
  });
});

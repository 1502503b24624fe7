import { expect, it } from "vitest";
import { ResourceExhaustedError } from "../../../src/users/client/index.ts";
import { errorOf, fakeClient, problem, TIME, UUID } from "./fake.ts";

const slot = { uuid: UUID, cell_id: "7", expires_at: TIME, expires_in_ms: 60_000 };

it("takes a slot, and releases it", async () => {
  const { client, sent } = fakeClient([
    { status: 200, json: { slot } },
    { status: 200, json: { released: true } },
    { status: 200, json: { released: false } },
  ]);
  expect(await client.verificationSlots.take(UUID)).toEqual(slot);
  expect(await client.verificationSlots.release(UUID)).toBe(true);
  expect(await client.verificationSlots.release(UUID)).toBe(false);
  const path = `http://leasehold.test/v1/cells/7/verification-slots/${UUID}`;
  expect(sent.map(({ method, url, body }) => [method, url, body])).toEqual([
    ["PUT", path, undefined],
    ["POST", `${path}/release`, undefined],
    ["POST", `${path}/release`, undefined],
  ]);
});

it("throws with `retryAfterMs` while no slot is free, instead of waiting", async () => {
  const { client, sent } = fakeClient([
    {
      ...problem(429, "RESOURCE_EXHAUSTED", { reason: "NO_VERIFICATION_SLOT" }),
      headers: { "retry-after": "60" },
    },
  ]);
  const error = await errorOf(client.verificationSlots.take(UUID));
  expect(error).toBeInstanceOf(ResourceExhaustedError);
  expect(error).toMatchObject({ reason: "NO_VERIFICATION_SLOT", retryAfterMs: 60_000 });
  expect(sent).toHaveLength(1);
});

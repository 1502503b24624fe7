import { expect, test } from "vitest";
import { HeldSlot } from "../../../src/users/cell/verification/run.ts";

test("[A3] a slot that is lost says when to ask again, to keep the place in the queue", async () => {
  const answers = [
    { isTaken: true, expiresInMs: 0 },
    { isTaken: false, retryAfterMs: 15_000 },
  ] as const;
  let calls = 0;
  const slots = {
    take: async () => answers[(calls += 1) - 1] ?? answers[1],
    release: async () => {},
  };
  const slot = new HeldSlot(slots, "11111111-1111-4111-8111-111111111111");
  await slot.take();
  expect(slot.retryAfterMs).toBeUndefined();
  expect(await slot.renew()).toBe("lost");
  expect(slot.retryAfterMs).toBe(15_000);
});

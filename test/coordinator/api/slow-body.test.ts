/** A request whose body doesn't arrive in time. */
import { beforeAll, expect, test } from "vitest";
import { v4 as newUuid } from "uuid";
import { Api, env, startDeployment } from "../../support/workerd/api.ts";
import { counting } from "../../support/workerd/counting.ts";

const slow = { LEASEHOLD_BODY_READ_MS: "50" };

beforeAll(async () => void (await startDeployment("1")));

/** A body that has begun and sends nothing more. */
function endless(): { raw: ReadableStream<Uint8Array>; isCancelled: () => boolean; abandon: () => void } {
  let isCancelled = false;
  let abandon = (): void => {};
  const raw = new ReadableStream<Uint8Array>({
    start: (controller) => {
      controller.enqueue(new TextEncoder().encode("{"));
      abandon = () => controller.error(new Error("the caller went away"));
    },
    cancel: () => void (isCancelled = true),
  });
  return { raw, isCancelled: () => isCancelled, abandon };
}

test.each([true, false])("is answered 408, with a Content-Length: %s", async (told) => {
  const { env: own, calls } = counting({ ...env, ...slow });
  const { raw, isCancelled, abandon } = endless();
  const refused = await new Api({ ...own }).problem(408, "PUT", `/v1/cells/1/leases/${newUuid()}`, {
    key: "cell 1",
    raw,
    headers: { "content-type": "application/json", ...(told ? { "content-length": "1000" } : {}) },
  });
  expect(refused).toMatchObject({ code: "RESOURCE_EXHAUSTED", reason: "BODY_TOO_SLOW", retryable: true });
  expect(refused.detail).toContain("within 50 ms (limit `body_read_ms`)");
  expect(calls).toEqual([]);
  // A body with a declared length is read in one call, which cannot be cancelled.
  if (told) abandon();
  else expect(isCancelled()).toBe(true);
});

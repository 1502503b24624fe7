/** What the tests inside workerd begin with. */
import { evictAllDurableObjects } from "cloudflare:test";
import { expect, test } from "vitest";
import { resetAll } from "../../support/workerd/reset-all.ts";
import { env, startDeployment } from "../../support/workerd/api.ts";

test("a reset also empties objects that were evicted", async () => {
  await startDeployment("1");
  await evictAllDurableObjects();
  await resetAll(env);
  const api = await startDeployment();
  expect(await api.json(200, "GET", "/v1/admin/cells")).toMatchObject({ cells: [] });
});

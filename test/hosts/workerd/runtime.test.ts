import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { RuntimeWatch } from "../../../src/hosts/workerd/runtime-watch.ts";

/** Whether a watch whose checks are done has found that its runtime is lost. */
const isLost = async (watch: RuntimeWatch): Promise<boolean> =>
  (await Promise.race([watch.failed, Promise.resolve()])) !== undefined;

test("a runtime that answers later has not failed, and neither has one that was stopped", async () => {
  let isUp = false;
  let asked = 0;
  const server = createServer((_, response) => {
    asked += 1;
    response.writeHead(isUp ? 200 : 503).end();
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const watches = [new RuntimeWatch(1), new RuntimeWatch(1), new RuntimeWatch(1)] as const;
  for (const watch of watches) watch.start(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const [patient, stopped, given] = watches;
  await given.check(3);
  expect(await isLost(given)).toBe(true);
  const checked = patient.check(Infinity);
  const missed = stopped.check(3);
  stopped.stop();
  await missed;
  const soFar = asked;
  await expect.poll(() => asked).toBeGreaterThan(soFar);
  isUp = true;
  await checked;
  expect(await Promise.all([patient, stopped].map(isLost))).toEqual([false, false]);
});

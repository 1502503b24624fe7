/**
 * The fair share where each request has a context of its own, which test/coordinator/api/fair-shares.test.ts
 * lacks.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { startCoordinator } from "../../../src/hosts/workerd/coordinator.ts";

const LOOKUPS = 10;
const encoder = new TextEncoder();

/** A body whose length is not declared, so that it takes the whole share. It ends when `end` does. */
const bodyOf = (value: unknown, end = Promise.resolve()): ReadableStream =>
  new ReadableStream({
    start: async (controller) => {
      controller.enqueue(encoder.encode(JSON.stringify(value)));
      await end;
      controller.close();
    },
  });

test("[M8] a request that waits starts when the one before it has ended, without a timer", async () => {
  const stateFolder = mkdtempSync(join(tmpdir(), "leasehold-share-"));
  const coordinator = await startCoordinator({
    port: 0,
    stateFolder,
    entryPoint: join(import.meta.dirname, "../../support/workerd/patient-worker.ts"),
    cronAtStart: false,
  });
  onTestFinished(async () => {
    await coordinator.stop();
    rmSync(stateFolder, { recursive: true, force: true });
  });
  const { url, keys } = coordinator;
  const send = async (path: string, key = "", init: object = {}): Promise<number> => {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const answer = await fetch(new URL(path, url), { headers, ...init });
    await answer.text();
    return answer.status;
  };
  // Without another caller, the share would be larger.
  const other = (): Promise<number> => send("/v1/cells/1/leases", keys.cells["1"]);
  const lookup = (end?: Promise<void>): Promise<number> =>
    send("/v1/records/lookup", keys.router, {
      method: "POST",
      body: bodyOf({ buckets: [{ type: "USERNAMES", value: "ada" }] }, end),
      duplex: "half",
    });
  expect(await other()).toBe(200);
  const end = Promise.withResolvers<void>();
  const lookups = Array.from({ length: LOOKUPS }, (_, index) =>
    lookup(index === 0 ? end.promise : undefined),
  );
  expect(await other()).toBe(200);
  end.resolve();
  expect(await Promise.all(lookups)).toEqual(Array.from({ length: LOOKUPS }, () => 200));
});

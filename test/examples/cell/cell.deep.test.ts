/**
 * Tests the example in a browser. All tests share one example, because its start takes longer than most
 * tests.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isBrowserSkipped } from "../../support/browser/chromium.ts";
import { accessTests } from "./access.ts";
import { crashTests } from "./crashes.ts";
import { nameTests } from "./names.ts";
import { operationsTests } from "./operations.ts";
import { securityTests } from "./security.ts";
import { storeTests } from "./stores.ts";
import { startSharedExample, type SharedExample } from "./shared-example.ts";

describe.skipIf(isBrowserSkipped())("the example", () => {
  let made: SharedExample | undefined;
  const shared = (): SharedExample => {
    if (made === undefined) throw new Error("the example did not start");
    return made;
  };

  beforeAll(async () => {
    made = await startSharedExample();
  });

  afterAll(async () => {
    await made?.browser.close();
    await made?.example.end();
    made?.example.removeFolder();
  });

  describe("names", () => nameTests(shared));
  describe("stores", () => storeTests(shared));
  describe("crashes", () => crashTests(shared));
  describe("operations", () => operationsTests(shared));
  describe("access", () => accessTests(shared));
  describe("security", () => securityTests(shared));

  test("no page caused an error or a policy violation, and Ctrl-C removes all files", async () => {
    const { example, complaints } = shared();
    expect(complaints).toEqual([]);
    expect(await example.end()).toBe(0);
    expect(example.left().filter((name) => name.startsWith("leasehold"))).toEqual([]);
    for (const url of [example.url, example.cellUrl("1"), example.cellUrl("2")])
      await expect(fetch(url)).rejects.toThrow();
  });
});

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
import { BrowserSession, freshName } from "./browser-session.ts";
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

  test("no page and no line of output contains a key", async () => {
    const { example } = shared();
    const { operator, router, cells } = example.keys;
    const session = await BrowserSession.start(shared());
    await session.signUp("1", freshName("keys"));
    const paths = [
      "/",
      "/-/cells/1",
      "/-/cells/1/account",
      "/-/cells/1/operations",
      "/-/cells/1/panel",
      "/-/cells/2",
      "/nobody-here",
    ];
    let all = example.output;
    for (const path of paths) {
      await session.open(path);
      all += await session.page.content();
    }
    expect(all.length).toBeGreaterThan(10_000);
    for (const key of [operator, router, ...Object.values(cells)]) expect(all).not.toContain(key);
    await session.close();
  });

  test("no page caused an error or a policy violation, and Ctrl-C removes all files", async () => {
    const { example, complaints } = shared();
    expect(complaints).toEqual([]);
    expect(await example.end()).toBe(0);
    expect(example.left().filter((name) => name.startsWith("leasehold"))).toEqual([]);
    for (const url of [example.url, example.cellUrl("1"), example.cellUrl("2")])
      await expect(fetch(url)).rejects.toThrow();
  });
});

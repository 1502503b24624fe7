/** The console in Chromium: at two widths, in two color schemes, without scripts, and with the keyboard. */
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isBrowserSkipped, startChromium } from "../../../support/browser/chromium.ts";
import { tabTo } from "../../../support/browser/tab-to.ts";
import { violations } from "../../../support/browser/violations.ts";
import { inSlice } from "../../../support/slice.ts";
import { ConsoleSite, HOSTILE, HOSTILE_NAME, LONG } from "./console-site.ts";

const WIDE = { width: 1_280, height: 800 };
const PHONE = { width: 375, height: 740 };

const nameAt = (value: string): string =>
  `/console/name?${new URLSearchParams({ type: "USERNAMES", value }).toString()}`;

const PAGES = [
  "/console",
  "/console/search?q=ada",
  `/console/search?${new URLSearchParams({ q: HOSTILE }).toString()}`,
  "/console/name",
  nameAt("ada"),
  nameAt("nobody"),
  nameAt(HOSTILE_NAME),
  nameAt(LONG),
  "/console/leases",
  "/console/leases?cell=5&stale=1",
  "/console/cells",
  "/console/cells/2?count=1",
  "/console/cells/3",
  "/console/shards",
  "/console/transfers",
  "/console/verification",
  "/console/audit",
  "/console/keys",
  "/console/identities",
  "/console/identities?kind=token",
  "/console/keys/some-key-id",
  "/console/webhooks",
  "/console/webhooks/some-webhook-id",
  "/console/settings",
  "/console/health",
  "/console/nothing",
];

/** Pages that answer with another status than 200, which Chromium reports. */
const isExpected = (text: string): boolean => /the server responded with a status of 4\d\d/.test(text);

describe.skipIf(isBrowserSkipped())("the console in a browser", () => {
  let site: ConsoleSite;
  let browser: Browser;
  let viewerKey: string;
  let webhook: string;
  /** What the browser reported: errors, and violations of the policy. */
  const complaints: string[] = [];

  beforeAll(async () => {
    [site, browser] = await Promise.all([ConsoleSite.start(), startChromium()]);
    ({ viewer: viewerKey, webhook } = await site.fill());
  });

  afterAll(async () => {
    await browser?.close();
    await site?.close();
  });

  async function openPage(options: BrowserContextOptions = {}): Promise<Page> {
    const context = await browser.newContext({ viewport: WIDE, ...options });
    const page = await context.newPage();
    page.on("console", (message) => {
      if (!isExpected(message.text())) complaints.push(message.text());
    });
    page.on("pageerror", (error) => complaints.push(error.message));
    page.on("dialog", (dialog) => {
      complaints.push(dialog.message());
      void dialog.dismiss();
    });
    return page;
  }

  const press = async (page: Page, name: string): Promise<void> => {
    await Promise.all([page.waitForEvent("load"), page.getByRole("button", { name, exact: true }).click()]);
  };

  async function signIn(page: Page, key = site.keys.operator): Promise<void> {
    await page.goto(`${site.url}/console`);
    await page.fill("#key", key);
    await press(page, "Sign in");
    expect(await page.innerText("h1")).toBe("Overview");
  }

  const stateOf = async (cell: string): Promise<unknown> => {
    for await (const each of site.client().cells.list()) if (each.cell_id === cell) return each.state;
    return undefined;
  };

  /** Checks the page at both widths and in both schemes. */
  async function check(page: Page): Promise<void> {
    for (const viewport of [WIDE, PHONE]) {
      await page.setViewportSize(viewport);
      const at = `${page.url()} at ${viewport.width}`;
      expect(await page.evaluate("document.documentElement.scrollWidth"), at).toBe(viewport.width);
      expect(await violations(page), at).toEqual([]);
    }
  }

  /** Opens and checks pages that only a change leads to. */
  const changes: ((page: Page) => Promise<void>)[] = [
    async (page) => {
      await page.goto(`${site.url}/console/leases/2/${await site.begin("2", "hedy")}`);
      await check(page);
      await page.fill("#typed", "2");
      await page.fill("#reason", HOSTILE);
      await press(page, "Review the decision");
      await check(page);
    },
    async (page) => {
      const id = await site.transfer(HOSTILE_NAME, HOSTILE);
      for (const path of ["", `/${id}`]) {
        await page.goto(`${site.url}/console/transfers${path}`);
        await check(page);
      }
    },
    async (page) => {
      await page.goto(`${site.url}/console/keys`);
      await page.selectOption("#role", "viewer");
      await page.fill("#reason", "a new colleague");
      await press(page, "Make the key");
      await check(page);
    },
    async (page) => {
      for (const path of ["", "/change", "/remove"]) {
        await page.goto(`${site.url}/console/webhooks/${webhook}${path}`);
        await check(page);
      }
    },
  ];

  test("axe finds nothing on any page, and every page fits a phone", async () => {
    const page = await openPage();
    await page.goto(`${site.url}/console`);
    await check(page);
    await signIn(page);
    for (const path of inSlice(PAGES, 6)) {
      await page.goto(site.url + path);
      await check(page);
    }
    for (const change of inSlice(changes, changes.length)) await change(page);
    await page.context().close();
  });

  test("a viewer sees the pages without forms that change something", async () => {
    const page = await openPage({ viewport: PHONE });
    await signIn(page, viewerKey);
    await page.goto(`${site.url}/console/cells/2`);
    expect(await page.locator("main form[method=post]").count()).toBe(0);
    expect(await page.innerText(".who")).toContain("viewer");
    await page.context().close();
  });

  test("hostile texts are shown as text", async () => {
    const page = await openPage();
    await signIn(page);
    await page.goto(site.url + nameAt(HOSTILE_NAME));
    expect(await page.innerText("h1")).toBe(`Name ${HOSTILE_NAME}`);
    await page.goto(`${site.url}/console/cells/3`);
    expect(await page.innerText("h1")).toBe(String.raw`Cell 3: ${HOSTILE_NAME}\u202egnp`);
    await page.goto(site.url + nameAt(LONG));
    expect(await page.innerText("h1")).toBe(`Name ${LONG}`);
    expect(await page.locator("script").count()).toBe(0);
    await page.context().close();
  });

  test("without scripts: find a name, decide a lease, change a cell and a webhook", async () => {
    const uuid = await site.begin("1", "annie");
    const page = await openPage({ javaScriptEnabled: false });
    await signIn(page);
    await page.fill("[name=q]", "grace");
    await press(page, "Search");
    await Promise.all([page.waitForEvent("load"), page.click("main li a")]);
    expect(await page.innerText("h1")).toBe("Name grace");

    await page.goto(`${site.url}/console/leases/1/${uuid}`);
    await page.selectOption("#decision", "commit");
    await page.fill("#typed", "1");
    await page.fill("#reason", "its cell is gone");
    await press(page, "Review the decision");
    expect(await page.innerText("h1")).toBe("Commit this lease of cell 1?");
    await press(page, "Commit, which is final");
    expect(await page.innerText("main")).toMatch(/COMMITTED[^]*its cell is gone/);

    const change = async (name: string, state: string): Promise<void> => {
      await page.goto(`${site.url}/console/cells/5`);
      await page.selectOption("#state", name);
      await page.fill("#typed", "5");
      await page.fill("#reason", "a test");
      await press(page, "Change the state");
      expect(await page.innerText(".facts .state")).toBe(state);
      expect(await stateOf("5")).toBe(state);
    };
    await change("freeze", "FROZEN");
    await change("unfreeze", "ACTIVE");
    await change("drain", "DRAINING");
    await change("unfreeze", "ACTIVE");

    await page.goto(`${site.url}/console/webhooks/${webhook}/change`);
    await page.uncheck("[value=cell_silent]");
    await page.fill("#typed", webhook.slice(-8));
    await page.fill("#reason", "a test");
    await press(page, "Change the webhook");
    expect(await page.innerText(".facts")).not.toContain("cell_silent");
    await press(page, "Sign out");
    expect(await page.innerText("h1")).toBe("Sign in");
    await page.context().close();
  });

  test("with the keyboard only: sign in, skip to the content, decide a lease", async () => {
    const uuid = await site.begin("1", "radia");
    const page = await openPage();
    const { keyboard } = page;
    const pressEnter = () => Promise.all([page.waitForEvent("load"), keyboard.press("Enter")]);
    await page.goto(`${site.url}/console`);
    await tabTo(page, "#key");
    await keyboard.type(site.keys.operator);
    await pressEnter();
    await page.goto(`${site.url}/console/leases/1/${uuid}`);
    await tabTo(page, ".skip");
    await keyboard.press("Enter");
    await expect.poll(() => page.evaluate("document.activeElement?.id")).toBe("main");
    await tabTo(page, "#decision");
    await tabTo(page, "#typed");
    await keyboard.type("1");
    await tabTo(page, "#reason");
    await keyboard.type("its cell is gone");
    await tabTo(page, "form.stack button");
    await pressEnter();
    await tabTo(page, "button.danger");
    const outline: unknown = await page.evaluate("getComputedStyle(document.activeElement).outlineStyle");
    expect(outline).toBe("solid");
    await pressEnter();
    expect(await page.innerText("main")).toContain("ROLLED_BACK");
    await page.context().close();
  });

  test("1,000 open leases: every page stays short", async () => {
    await site.beginMany("5", 990);
    await site.cron();
    const page = await openPage();
    await signIn(page);
    expect(await page.innerText("main")).toMatch(/Open leases\s+(99|1,00)\d/);
    for (const path of ["/console", "/console/leases", "/console/leases?cell=5", "/console/cells/5"]) {
      await page.goto(site.url + path);
      expect((await page.content()).length, path).toBeLessThan(60_000);
    }
    await page.goto(`${site.url}/console/leases?cell=5`);
    const oldest = await page.locator("tbody th a").allInnerTexts();
    expect(oldest).toHaveLength(50);
    await Promise.all([page.waitForEvent("load"), page.click("text=Next page")]);
    const next = await page.locator("tbody th a").allInnerTexts();
    expect(new Set([...oldest, ...next]).size).toBe(100);
    await page.context().close();
  });

  test("the browser reported no error, and no violation of the policy", () => {
    expect(complaints).toEqual([]);
  });
});

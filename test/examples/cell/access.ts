import { expect, test } from "vitest";
import { tabTo } from "../../support/browser/tab-to.ts";
import { violations } from "../../support/browser/violations.ts";
import { eventually } from "./eventually.ts";
import { freshName, BrowserSession } from "./browser-session.ts";
import type { SharedExample } from "./shared-example.ts";

const ROUTER_PAGES = ["/", "/nobody-has-this", "/-/nothing"];
const CELL_PAGES = ["/-/cells/1", "/-/cells/1/account", "/-/cells/1/operations", "/-/cells/1/nothing"];

export function accessTests(shared: () => SharedExample): void {
  test("axe finds no violation on any page, in light and in dark mode", async () => {
    const session = await BrowserSession.start(shared());
    const { page } = session;
    const check = async (): Promise<void> => expect(await violations(page), page.url()).toEqual([]);
    const name = freshName("axe");
    await session.signUp("1", name);
    await session.openStore("not_a_store");
    await check();
    await session.openStore(name);
    for (const path of [...ROUTER_PAGES, ...CELL_PAGES, `/${name}`, `/stores/${name}`]) {
      await session.open(path);
      await check();
    }
    await session.signUp("2", name);
    await check();
    await session.signUp("1", name, "no email");
    await page.click("summary");
    await check();
    // Without the script, the page of a cell that is down does not reload.
    await page.route("**/enhance.js*", (route) => route.abort());
    await session.signUpAndCrash("1", freshName("axe"), "after_commit");
    expect(await session.heading()).toBe("Cell 1 is down for a moment");
    await check();
    await eventually(() => session.open("/-/cells/1")).toBe(200);
    await check();
    await session.close();
  });

  test("every page fits into a width of 360 pixels", async () => {
    const session = await BrowserSession.start(shared(), { viewport: { width: 360, height: 740 } });
    const name = freshName("a-handle-that-is-rather-long");
    await session.signUp("1", name);
    await session.openStore("a-name-of-thirty-characters-00");
    for (const path of [
      ...ROUTER_PAGES,
      ...CELL_PAGES,
      `/${name}`,
      "/stores/a-name-of-thirty-characters-00",
    ]) {
      await session.open(path);
      expect(await session.page.evaluate("document.documentElement.scrollWidth"), path).toBe(360);
    }
    await session.close();
  });

  test("all actions work with the keyboard, and the first invalid field gets the focus", async () => {
    const session = await BrowserSession.start(shared());
    const { page } = session;
    const { keyboard } = page;
    await session.open("/-/cells/1");
    await keyboard.press("Tab");
    expect(await page.evaluate("document.activeElement?.className")).toBe("skip");
    await keyboard.press("Enter");
    await eventually(() => session.focused()).toBe("main");
    await keyboard.press("Tab");
    expect(await session.focused()).toBe("handle");
    const name = freshName("keys");
    await keyboard.type(name);
    await keyboard.press("Tab");
    await keyboard.type("no email");
    await Promise.all([page.waitForEvent("load"), keyboard.press("Enter")]);
    // The first invalid field is not the first field of the form.
    await eventually(() => session.focused()).toBe("email");
    expect(await page.inputValue("#handle")).toBe(name);
    await keyboard.press("Control+A");
    await keyboard.type(`${name}@example.com`);
    await tabTo(page, "button");
    await Promise.all([page.waitForEvent("load"), keyboard.press("Enter")]);
    expect(session.path).toBe("/-/cells/1/account");
    await tabTo(page, ".danger");
    await Promise.all([page.waitForEvent("load"), keyboard.press("Enter")]);
    expect(await page.innerText("[role=status]")).toContain("The account is deleted");
    await session.close();
  });

  test("all actions work without JavaScript", async () => {
    const session = await BrowserSession.start(shared(), { javaScriptEnabled: false });
    const { page } = session;
    const [name, other] = [freshName("plain"), freshName("plain")];
    await session.signUp("2", name);
    expect(session.path).toBe("/-/cells/2/account");
    await session.signUp("2", name, `${other}@example.com`);
    expect(await page.innerText("#handle-problem")).toContain("taken");
    await session.press(`Sign in as ${name}`);
    await session.rename(other);
    expect(await session.heading()).toBe(other);
    await session.signUpAndCrash("2", freshName("plain"), "after_commit");
    expect(await session.heading()).toBe("Cell 2 is down for a moment");
    const back = page.getByRole("link", { name: "Back to Cell 2" });
    await eventually(async () => {
      await Promise.all([page.waitForEvent("load"), back.click()]);
      return session.heading();
    }).toBe("People of Cell 2");
    await session.open("/-/cells/2/account");
    await session.press(`Delete ${other}`);
    await session.open("/");
    await page.fill("#address", other);
    await session.press("Go there");
    expect(await session.heading()).toBe("Nobody has this name");
    await session.close();
  });
}

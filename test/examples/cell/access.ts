import axe from "axe-core";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { eventually } from "./eventually.ts";
import { freshName, Visitor } from "./visitor.ts";
import type { World } from "./world.ts";

interface Violation {
  id: string;
  nodes: { target: unknown[]; failureSummary?: string }[];
}

/** What axe has against the page, in light and in dark: between those only the colours differ. */
async function violations(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  const light = await violationsIn(page, "light", {});
  const dark = await violationsIn(page, "dark", { runOnly: ["color-contrast"] });
  return [...light, ...dark];
}

async function violationsIn(
  page: Page,
  colorScheme: "light" | "dark",
  options: axe.RunOptions,
): Promise<string[]> {
  await page.emulateMedia({ colorScheme });
  const asked = JSON.stringify({ ...options, resultTypes: ["violations"], preload: false });
  const found: Violation[] = await page.evaluate(`axe.run(${asked}).then(({ violations }) => violations)`);
  return found.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${colorScheme} ${id} ${String(target)} ${failureSummary}`),
  );
}

/** Presses Tab until the focus is on it. */
async function tabTo(page: Page, isThere: string): Promise<void> {
  for (let presses = 0; presses < 30; presses += 1) {
    await page.keyboard.press("Tab");
    if ((await page.evaluate(`document.activeElement?.matches(${JSON.stringify(isThere)})`)) === true) return;
  }
  throw new Error(`no Tab leads to ${isThere}`);
}

const ROUTER_PAGES = ["/", "/nobody-has-this", "/-/nothing"];
const CELL_PAGES = ["/-/cells/1", "/-/cells/1/account", "/-/cells/1/operations", "/-/cells/1/nothing"];

export function accessTests(world: () => World): void {
  test("axe has nothing against any page, in light and in dark", async () => {
    const visitor = await Visitor.arrive(world());
    const { page } = visitor;
    const check = async (): Promise<void> => expect(await violations(page), page.url()).toEqual([]);
    const name = freshName("axe");
    await visitor.signUp("1", name);
    for (const path of [...ROUTER_PAGES, ...CELL_PAGES, `/${name}`]) {
      await visitor.open(path);
      await check();
    }
    await visitor.signUp("2", name);
    await check();
    await visitor.signUp("1", name, "no email");
    await page.click("summary");
    await check();
    // Without its script the page of a cell that is away stays.
    await page.route("**/enhance.js*", (route) => route.abort());
    await visitor.signUpAndCrash("1", freshName("axe"), "after_commit");
    expect(await visitor.heading()).toBe("Cell 1 is away for a moment");
    await check();
    await eventually(() => visitor.open("/-/cells/1")).toBe(200);
    await check();
    await visitor.leave();
  });

  test("everything fits into 360 pixels", async () => {
    const visitor = await Visitor.arrive(world(), { viewport: { width: 360, height: 740 } });
    const name = freshName("a-username-that-is-rather-long");
    await visitor.signUp("1", name);
    for (const path of [...ROUTER_PAGES, ...CELL_PAGES, `/${name}`]) {
      await visitor.open(path);
      expect(await visitor.page.evaluate("document.documentElement.scrollWidth"), path).toBe(360);
    }
    await visitor.leave();
  });

  test("a keyboard is enough: the skip link, a sign-up, and the first wrong field has the focus", async () => {
    const visitor = await Visitor.arrive(world());
    const { page } = visitor;
    const { keyboard } = page;
    await visitor.open("/-/cells/1");
    await keyboard.press("Tab");
    expect(await page.evaluate("document.activeElement?.className")).toBe("skip");
    await keyboard.press("Enter");
    await eventually(() => visitor.focused()).toBe("main");
    await keyboard.press("Tab");
    expect(await visitor.focused()).toBe("username");
    const name = freshName("keys");
    await keyboard.type(name);
    await keyboard.press("Tab");
    await keyboard.type("no email");
    await Promise.all([page.waitForEvent("load"), keyboard.press("Enter")]);
    // The first wrong one, which is not the first one.
    await eventually(() => visitor.focused()).toBe("email");
    expect(await page.inputValue("#username")).toBe(name);
    await keyboard.press("Control+A");
    await keyboard.type(`${name}@example.com`);
    await tabTo(page, "button");
    await Promise.all([page.waitForEvent("load"), keyboard.press("Enter")]);
    expect(visitor.path).toBe("/-/cells/1/account");
    await tabTo(page, ".danger");
    await Promise.all([page.waitForEvent("load"), keyboard.press("Enter")]);
    expect(await page.innerText("[role=status]")).toContain("The account is gone");
    await visitor.leave();
  });

  test("all of it works without JavaScript", async () => {
    const visitor = await Visitor.arrive(world(), { javaScriptEnabled: false });
    const { page } = visitor;
    const [name, other] = [freshName("plain"), freshName("plain")];
    await visitor.signUp("2", name);
    expect(visitor.path).toBe("/-/cells/2/account");
    await visitor.signUp("2", name, `${other}@example.com`);
    expect(await page.innerText("#username-problem")).toContain("taken");
    await visitor.press(`Sign in as ${name}`);
    await visitor.rename(other);
    expect(await visitor.heading()).toBe(other);
    await visitor.signUpAndCrash("2", freshName("plain"), "after_commit");
    expect(await visitor.heading()).toBe("Cell 2 is away for a moment");
    const back = page.getByRole("link", { name: "Back to Cell 2" });
    await eventually(async () => {
      await Promise.all([page.waitForEvent("load"), back.click()]);
      return visitor.heading();
    }).toBe("People of Cell 2");
    await visitor.open("/-/cells/2/account");
    await visitor.press(`Delete ${other}`);
    await visitor.open("/");
    await page.fill("#route", other);
    await visitor.press("Go there");
    expect(await visitor.heading()).toBe("Nobody has this name");
    await visitor.leave();
  });
}

import { expect, test } from "vitest";
import { freshName, BrowserSession } from "./browser-session.ts";
import type { SharedExample } from "./shared-example.ts";

/** Causes drift of every kind, each for another account. */
async function plantEach(session: BrowserSession): Promise<Record<"claim" | "row" | "insert", string>> {
  const { page } = session;
  const names = { claim: freshName("drift"), row: freshName("drift"), insert: freshName("drift") };
  for (const name of Object.values(names)) await session.signUp("2", name);
  for (const [drift, name] of Object.entries(names)) {
    await session.open("/-/cells/2/operations");
    await page.selectOption("#person", { label: name });
    await page.check(`input[value="${drift}"]`);
    await session.press("Cause drift");
    expect(await page.innerText("[role=status]")).toContain(name);
  }
  return names;
}

export function operationsTests(shared: () => SharedExample): void {
  test("each kind of drift makes rows and claims disagree", async () => {
    const { records } = shared().example;
    const session = await BrowserSession.start(shared());
    const { page } = session;
    const names = await plantEach(session);
    await session.open("/-/cells/2");
    const people = await page.locator(".people strong").allInnerTexts();
    // The first row has no claim, the second has another handle than its claim, and the third was never
    // claimed.
    expect(people).toContain(names.claim);
    expect(await records.find({ type: "HANDLES", value: names.claim })).toBeUndefined();
    expect(people).not.toContain(names.row);
    expect(await records.find({ type: "HANDLES", value: names.row })).toBeDefined();
    const unclaimed = people.find((name) => name.startsWith(`${names.insert}-`)) ?? "";
    expect(await records.find({ type: "HANDLES", value: unclaimed })).toBeUndefined();
    await session.close();
  });

  test("a verification finds drift and repairs it, and the next one finds none", async () => {
    const { records } = shared().example;
    const session = await BrowserSession.start(shared());
    const { page } = session;
    const names = await plantEach(session);
    await session.press("Verify");
    const plan = await page.innerText("[aria-labelledby=report]");
    expect(plan).toContain("Nothing was changed yet.");
    expect(plan).toContain(`missing HANDLES ${names.claim}`);
    expect(plan).toContain(`different HANDLES ${names.row}`);
    expect(await records.find({ type: "HANDLES", value: names.claim })).toBeUndefined();

    await session.press("Verify and repair");
    expect(await page.innerText("[aria-labelledby=report]")).toContain("The repairs are listed below.");
    expect(await records.find({ type: "HANDLES", value: names.claim })).toBeDefined();
    expect(await records.find({ type: "HANDLES", value: names.row })).toBeUndefined();

    await session.press("Verify");
    expect(await page.innerText("[aria-labelledby=report]")).toContain("Rows and claims agree.");
    await session.close();
  });
}

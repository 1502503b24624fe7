import { expect, test } from "vitest";
import { freshName, BrowserSession } from "./browser-session.ts";
import type { SharedExample } from "./shared-example.ts";

async function plant(session: BrowserSession, cell: string, drift: string, name: string): Promise<void> {
  const { page } = session;
  await session.open(`/-/cells/${cell}/operations`);
  await page.selectOption("#person", { label: name });
  await page.check(`input[value="${drift}"]`);
  await session.press("Cause drift");
  expect(await page.innerText("[role=status]")).toContain(name);
}

/** Causes every kind of drift that can be repaired, each for another account. */
async function plantEach(session: BrowserSession): Promise<Record<"claim" | "row" | "insert", string>> {
  const names = { claim: freshName("drift"), row: freshName("drift"), insert: freshName("drift") };
  for (const name of Object.values(names)) await session.signUp("2", name);
  for (const [drift, name] of Object.entries(names)) await plant(session, "2", drift, name);
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

  test("a verification says which other cell or row has a name", async () => {
    const [session, other] = [await BrowserSession.start(shared()), await BrowserSession.start(shared())];
    const { page } = session;
    const [lost, twin] = [freshName("lost"), freshName("twin")];
    for (const [name, drift] of [
      [lost, "claim"],
      [twin, "twin"],
    ] as const) {
      await session.signUp("1", name);
      await plant(session, "1", drift, name);
    }
    await other.signUp("2", lost, `${freshName("other")}@example.com`);
    expect(other.path).toBe("/-/cells/2/account");

    await session.press("Verify and repair");
    const found = (name: string): Promise<string[]> =>
      page.locator("[aria-labelledby=report] li", { hasText: name }).allInnerTexts();
    expect(await found(lost)).toEqual([expect.stringMatching(/PEOPLE \d+; skipped: Cell 2 has the name$/)]);
    expect(await found(`HANDLES ${fullWidth(twin)}`)).toEqual([
      expect.stringMatching(/PEOPLE \d+; skipped: PEOPLE \d+ has the name, too$/),
    ]);
    await Promise.all([session.close(), other.close()]);
  });
}

const fullWidth = (name: string): string =>
  String.fromCharCode(...Array.from(name, (character) => character.charCodeAt(0) + 0xfee0));

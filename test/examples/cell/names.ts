import { expect, test } from "vitest";
import { eventually } from "./eventually.ts";
import { freshName, BrowserSession } from "./browser-session.ts";
import type { SharedExample } from "./shared-example.ts";

export function nameTests(shared: () => SharedExample): void {
  test("a name of the other cell is refused beside its field, and the sign-up saves nothing", async () => {
    const { records } = shared().example;
    const session = await BrowserSession.start(shared());
    const { page } = session;
    const name = freshName("ada");
    const free = `${freshName("free")}@example.com`;
    await session.signUp("1", name);
    expect(session.path).toBe("/-/cells/1/account");

    await session.signUp("2", name.toUpperCase(), free);
    expect(session.path).toBe("/-/cells/2/sign-up");
    expect(await page.innerText("[role=alert]")).toContain("Handle has already been taken");
    expect(await page.innerText("#handle-problem")).toBe("Handle has already been taken.");
    expect(await page.getAttribute("#handle", "aria-invalid")).toBe("true");
    expect(await page.getAttribute("#handle", "aria-describedby")).toBe("handle-problem handle-hint");
    expect(await page.getAttribute("#email", "aria-invalid")).toBe("false");
    expect(await page.inputValue("#handle")).toBe(name.toUpperCase());
    expect(await page.inputValue("#email")).toBe(free);
    expect(await session.focused()).toBe("handle");
    expect(await page.locator(".people", { hasText: free }).count()).toBe(0);
    expect(await page.locator(".lease").first().innerText()).toContain("is taken");
    expect(await records.find({ type: "EMAILS", value: free })).toBeUndefined();

    // If both names are taken, both fields say so.
    await session.signUp("2", name, `${name}@Example.com`);
    expect(await page.locator(".problem").allInnerTexts()).toEqual([
      "Handle has already been taken.",
      "Email has already been taken.",
    ]);

    // The refused sign-up left the email free.
    await session.signUp("2", freshName("ada"), free);
    expect(session.path).toBe("/-/cells/2/account");
    await session.close();
  });

  test("a name of the same cell is refused by its own database, without a lease", async () => {
    const session = await BrowserSession.start(shared());
    const { page } = session;
    const name = freshName("twin");
    await session.signUp("1", name);
    const leases = (await page.locator(".lease").allInnerTexts()).length;
    await session.signUp("1", name.toUpperCase(), `${freshName("other")}@example.com`);
    expect(session.path).toBe("/-/cells/1/sign-up");
    expect(await page.innerText("#handle-problem")).toBe("Handle has already been taken.");
    expect(await page.getAttribute("#email", "aria-invalid")).toBe("false");
    expect(await page.locator(".lease").count()).toBe(leases);
    await session.signUp("1", freshName("twin"), `${name}@example.com`.toUpperCase());
    expect(await page.innerText("#email-problem")).toBe("Email has already been taken.");
    await session.close();
  });

  test("a rename moves the profile", async () => {
    const { example } = shared();
    const session = await BrowserSession.start(shared());
    const [before, after] = [freshName("before"), freshName("after")];
    await session.signUp("2", before);
    const first = await fetch(`${example.url}/${before}`);
    expect([first.status, first.headers.get("leasehold-cell")]).toEqual([200, "2"]);
    expect(first.headers.get("leasehold-age-ms")).toMatch(/^\d+$/);
    expect(await first.text()).toMatch(/the router, by an answer \d+ ms old/);

    await session.rename(after);
    expect(session.path).toBe("/-/cells/2/account");
    expect(await session.heading()).toBe(after);
    expect(await session.page.innerText("[role=status]")).toContain("The old name is free");
    const found = await fetch(`${example.url}/${after}`);
    expect([found.status, found.headers.get("leasehold-cell")]).toEqual([200, "2"]);
    // The router may still remember the old name. The cell refuses it, and the router asks again.
    expect(await session.open(`/${before}`)).toBe(404);
    expect(await session.heading()).toBe("Nobody has this name");
    await session.close();
  });

  test("a rename to a name of the other cell is refused and changes nothing", async () => {
    const session = await BrowserSession.start(shared());
    const [taken, mine] = [freshName("taken"), freshName("mine")];
    await session.signUp("1", taken);
    await session.signUp("2", mine);
    await session.rename(taken);
    expect(await session.page.innerText("#handle-problem")).toBe("Handle has already been taken.");
    expect(await session.page.inputValue("#handle")).toBe(taken);
    await session.open("/-/cells/2/account");
    expect(await session.heading()).toBe(mine);
    await session.close();
  });

  test("a rename can change only the spelling", async () => {
    const { example } = shared();
    const session = await BrowserSession.start(shared());
    const name = freshName("case");
    await session.signUp("1", name);
    await session.rename(name.toUpperCase());
    expect(await session.heading()).toBe(name.toUpperCase());
    const message = await session.page.innerText("[role=status]");
    expect(message).toContain("Nobody else can take the name in any spelling");
    expect(message).not.toContain("free");
    expect(await session.page.locator(".lease").first().innerText()).toContain("replace handle");
    await session.rename(name.toUpperCase());
    expect(await session.page.innerText("[role=status]")).toBe("The handle is as it was.");
    // Every spelling reaches the profile, also while the router caches the first one.
    for (const spelling of [name, name.toUpperCase()])
      expect((await fetch(`${example.url}/${spelling}`)).status).toBe(200);
    await eventually(
      async () => (await example.records.find({ type: "HANDLES", value: name }))?.record.bucket.value,
    ).toBe(name.toUpperCase());
    await session.close();
  });

  test("a deletion frees the names for the other cell", async () => {
    const session = await BrowserSession.start(shared());
    const name = freshName("leaver");
    await session.signUp("1", name);
    await session.press(`Delete ${name}`);
    expect(await session.page.innerText("[role=status]")).toContain("its names are free");
    await session.signUp("2", name);
    expect(session.path).toBe("/-/cells/2/account");
    await eventually(() => session.open(`/${name}`)).toBe(200);
    expect(await session.page.innerText(".facts")).toContain("Cell 2");
    await session.close();
  });

  test("an invalid name is refused beside its field, by the form or by the coordinator", async () => {
    const session = await BrowserSession.start(shared());
    await session.signUp("1", "not/a name", "no email");
    expect(await session.page.locator(".problem").count()).toBe(2);
    // Latin and Cyrillic letters in one name.
    await session.signUp("1", "p\u0430ypal", `${freshName("mixed")}@example.com`);
    expect(await session.page.innerText("#handle-problem")).toContain("is not a possible name");
    await session.close();
  });
}

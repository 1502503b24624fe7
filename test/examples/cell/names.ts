import { expect, test } from "vitest";
import { eventually } from "./eventually.ts";
import { freshName, Visitor } from "./visitor.ts";
import type { World } from "./world.ts";

export function nameTests(world: () => World): void {
  test("a name of the other cell is refused field by field, and nothing of the sign-up is kept", async () => {
    const { records } = world().example;
    const visitor = await Visitor.arrive(world());
    const { page } = visitor;
    const name = freshName("ada");
    const free = `${freshName("free")}@example.com`;
    await visitor.signUp("1", name);
    expect(visitor.path).toBe("/-/cells/1/account");

    await visitor.signUp("2", name.toUpperCase(), free);
    expect(visitor.path).toBe("/-/cells/2/sign-up");
    expect(await page.innerText("[role=alert]")).toContain("Username has already been taken");
    expect(await page.innerText("#username-problem")).toBe("Username has already been taken.");
    expect(await page.getAttribute("#username", "aria-invalid")).toBe("true");
    expect(await page.getAttribute("#username", "aria-describedby")).toBe("username-problem username-hint");
    expect(await page.getAttribute("#email", "aria-invalid")).toBe("false");
    expect(await page.inputValue("#username")).toBe(name.toUpperCase());
    expect(await page.inputValue("#email")).toBe(free);
    expect(await visitor.focused()).toBe("username");
    expect(await page.locator(".people", { hasText: free }).count()).toBe(0);
    expect(await page.locator(".story").first().innerText()).toContain("is taken");
    expect(await records.find({ type: "EMAILS", value: free })).toBeUndefined();

    // Both fields, when both are taken.
    await visitor.signUp("2", name, `${name}@Example.com`);
    expect(await page.locator(".problem").allInnerTexts()).toEqual([
      "Username has already been taken.",
      "Email has already been taken.",
    ]);

    // And the free email is free indeed.
    await visitor.signUp("2", freshName("ada"), free);
    expect(visitor.path).toBe("/-/cells/2/account");
    await visitor.leave();
  });

  test("a rename takes the route with it: the old one ends, the new one is served by the same cell", async () => {
    const { example } = world();
    const visitor = await Visitor.arrive(world());
    const [before, after] = [freshName("before"), freshName("after")];
    await visitor.signUp("2", before);
    expect((await fetch(`${example.url}/${before}`)).headers.get("leasehold-lookup")).toBe(
      "asking the coordinator",
    );
    const again = await fetch(`${example.url}/${before}`);
    expect([again.status, again.headers.get("leasehold-cell")]).toEqual([200, "2"]);
    expect(again.headers.get("leasehold-lookup")).toMatch(/^the router's memory, \d+ ms old$/);

    await visitor.rename(after);
    expect(visitor.path).toBe("/-/cells/2/account");
    expect(await visitor.heading()).toBe(after);
    const found = await fetch(`${example.url}/${after}`);
    expect([found.status, found.headers.get("leasehold-cell")]).toEqual([200, "2"]);
    // As long as the router remembers it, the cell itself says that it is not there.
    await eventually(async () => (await fetch(`${example.url}/${before}`)).text()).toContain(
      "Nobody has this name",
    );
    expect(await visitor.open(`/${before}`)).toBe(404);
    expect(await visitor.heading()).toBe("Nobody has this name");
    await visitor.leave();
  });

  test("a rename to a name of the other cell says so, and changes nothing", async () => {
    const visitor = await Visitor.arrive(world());
    const [taken, mine] = [freshName("taken"), freshName("mine")];
    await visitor.signUp("1", taken);
    await visitor.signUp("2", mine);
    await visitor.rename(taken);
    expect(await visitor.page.innerText("#username-problem")).toBe("Username has already been taken.");
    expect(await visitor.page.inputValue("#username")).toBe(taken);
    await visitor.open("/-/cells/2/account");
    expect(await visitor.heading()).toBe(mine);
    await visitor.leave();
  });

  test("another spelling of the same name is no new name", async () => {
    const { example } = world();
    const visitor = await Visitor.arrive(world());
    const name = freshName("case");
    await visitor.signUp("1", name);
    await visitor.rename(name.toUpperCase());
    expect(await visitor.heading()).toBe(name.toUpperCase());
    expect(await visitor.page.locator(".story").first().innerText()).toContain("respell username");
    // Every spelling leads there, also while the router remembers the first one.
    for (const spelling of [name, name.toUpperCase()])
      expect((await fetch(`${example.url}/${spelling}`)).status).toBe(200);
    await eventually(
      async () => (await example.records.find({ type: "ROUTES", value: name }))?.record.bucket.value,
    ).toBe(name.toUpperCase());
    await visitor.leave();
  });

  test("a deletion frees the names for the other cell", async () => {
    const visitor = await Visitor.arrive(world());
    const name = freshName("leaver");
    await visitor.signUp("1", name);
    await visitor.press(`Delete ${name}`);
    expect(await visitor.page.innerText("[role=status]")).toContain("its names are free");
    await visitor.signUp("2", name);
    expect(visitor.path).toBe("/-/cells/2/account");
    await eventually(() => visitor.open(`/${name}`)).toBe(200);
    expect(await visitor.page.innerText(".facts")).toContain("Cell 2");
    await visitor.leave();
  });

  test("what can be no name is said beside its field, before anybody is asked or by whom it was asked", async () => {
    const visitor = await Visitor.arrive(world());
    await visitor.signUp("1", "not/a name", "no email");
    expect(await visitor.page.locator(".problem").count()).toBe(2);
    // Latin and Cyrillic letters in one name.
    await visitor.signUp("1", "p\u0430ypal", `${freshName("mixed")}@example.com`);
    expect(await visitor.page.innerText("#username-problem")).toContain("is not a possible name");
    await visitor.leave();
  });
}

import { expect, test } from "vitest";
import { eventually } from "./eventually.ts";
import { freshName, BrowserSession } from "./browser-session.ts";
import type { SharedExample } from "./shared-example.ts";

export function storeTests(shared: () => SharedExample): void {
  const withAccount = async (cell: string): Promise<BrowserSession> => {
    const session = await BrowserSession.start(shared());
    await session.signUp(cell, freshName("keeper"));
    return session;
  };

  test("a store has a name that no store of another cell can have, and its own address", async () => {
    const { example } = shared();
    const [first, second] = [await withAccount("1"), await withAccount("2")];
    const name = freshName("lamps");
    await first.openStore(name);
    expect(await first.page.innerText("[role=status]")).toContain("Your store is open");
    expect(await first.page.locator(".lease").first().innerText()).toMatch(
      new RegExp(`Store opening[^]*create store ${name}[^]*committed`),
    );

    await second.openStore(name.toUpperCase());
    expect(await second.page.innerText("#name-problem")).toBe("Store name has already been taken.");
    expect(await second.page.inputValue("#name")).toBe(name.toUpperCase());
    expect(await second.focused()).toBe("name");

    expect(await second.open(`/stores/${name}`)).toBe(200);
    expect(await second.heading()).toBe(name);
    expect(await second.page.innerText(".facts")).toContain("the router, by an answer");
    const answer = await fetch(`${example.url}/stores/${name.toUpperCase()}`);
    expect([answer.status, answer.headers.get("leasehold-cell")]).toEqual([200, "1"]);
    // A handle and a store can have the same name.
    expect(await second.open(`/${name}`)).toBe(404);
    await second.signUp("2", name);
    expect(second.path).toBe("/-/cells/2/account");
    await Promise.all([first.close(), second.close()]);
  });

  test("a closed store frees its name, and so does a deleted account", async () => {
    const [first, second] = [await withAccount("1"), await withAccount("2")];
    const name = freshName("lamps");
    await first.openStore(name);
    await first.press("Close the store");
    expect(await first.page.innerText("[role=status]")).toContain("its name is free");
    await second.openStore(name);
    expect(await second.page.innerText("[role=status]")).toContain("Your store is open");
    await second.press(`Delete ${await second.heading()}`);
    expect(await second.page.innerText("[role=status]")).toContain("its names are free");
    await first.openStore(name);
    expect(await first.page.innerText("[role=status]")).toContain("Your store is open");
    await Promise.all([first.close(), second.close()]);
  });

  test("the declared rule refuses names that a handle could have", async () => {
    const { example } = shared();
    const session = await withAccount("1");
    for (const name of ["ab", "no_underscore", "lämp", "two--hyphens", "a b c", "\u200b"]) {
      await session.openStore(name);
      expect(await session.page.innerText("#name-problem"), name).toContain("must have 3 to 30 characters");
    }
    await session.openStore("");
    expect(await session.page.innerText("#name-problem")).toBe("Store name is missing.");
    expect(await session.open("/stores/no_underscore")).toBe(404);
    expect(await session.heading()).toBe("Nobody has this name");
    const direct = await fetch(`${example.cellUrl("1")}/stores/%00`);
    expect(direct.status).toBe(404);
    await session.close();
  });

  test("two requests at the same time open one store", async () => {
    const { example } = shared();
    const session = await withAccount("1");
    const cookies = await session.page.context().cookies();
    const cookie = cookies.map(({ name, value }) => `${name}=${value}`).join("; ");
    const names = [freshName("twins"), freshName("twins")];
    const answers = await Promise.all(
      names.map((name) =>
        fetch(`${example.url}/-/cells/1/account/open-store`, {
          method: "POST",
          body: new URLSearchParams({ name }),
          headers: { origin: example.url, cookie },
          redirect: "manual",
        }),
      ),
    );
    expect(answers.map(({ status }) => status)).toEqual([303, 303]);
    const found = (): Promise<number[]> =>
      Promise.all(names.map(async (name) => (await fetch(`${example.url}/stores/${name}`)).status));
    await eventually(async () => (await found()).toSorted((a, b) => a - b)).toEqual([200, 404]);
    await session.close();
  });
}

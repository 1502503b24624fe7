import { expect, test } from "vitest";
import { freshName, Visitor } from "./visitor.ts";
import type { World } from "./world.ts";

export function crashTests(world: () => World): void {
  test("killed after COMMIT: a friendly page, and the lease is committed once the cell is back", async () => {
    const { example } = world();
    const visitor = await Visitor.arrive(world());
    const { page } = visitor;
    const name = freshName("saved");
    await visitor.signUpAndCrash("1", name, "after_commit");
    expect(await visitor.heading()).toBe("Cell 1 is away for a moment");
    // The page goes on by itself.
    await page.waitForURL(`${example.url}/-/cells/1`);
    const story = page.locator(".story", { hasText: name }).first();
    await story.locator(".healed").waitFor();
    expect(await story.innerText()).toMatch(/killed.*after COMMIT[\s\S]*committed by reconciliation/);
    await visitor.open("/-/cells/1");
    expect(await page.innerText(".people")).toContain(name);
    expect((await example.records.find({ type: "USERNAMES", value: name }))?.record.status).toBe("ACTIVE");
    expect(await visitor.open(`/${name}`)).toBe(200);
    await visitor.leave();
  });

  test("killed before COMMIT: the names are held until the lease is given up, then they are free", async () => {
    const { example } = world();
    const visitor = await Visitor.arrive(world());
    const { page } = visitor;
    const name = freshName("unsaved");
    await visitor.signUpAndCrash("1", name, "before_commit");
    expect(await visitor.heading()).toBe("Cell 1 is away for a moment");
    expect((await example.records.find({ type: "USERNAMES", value: name }))?.record.status).toBe(
      "LEASE_CREATING",
    );

    const other = await Visitor.arrive(world());
    await other.signUp("2", name);
    expect(await other.page.innerText("#username-problem")).toContain("try again in a moment");
    expect(await other.page.inputValue("#username")).toBe(name);

    await page.waitForURL(`${example.url}/-/cells/1`);
    const story = page.locator(".story", { hasText: name }).first();
    await story.locator(".healed").waitFor();
    expect(await story.innerText()).toMatch(
      /killed.*before COMMIT[\s\S]*fence[\s\S]*rolled back by reconciliation/,
    );
    await visitor.open("/-/cells/1");
    expect(await page.locator(".people", { hasText: name }).count()).toBe(0);
    await other.signUp("2", name);
    expect(other.path).toBe("/-/cells/2/account");
    await visitor.leave();
    await other.leave();
  });
}

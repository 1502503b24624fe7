import { expect, test } from "vitest";
import { freshName, BrowserSession } from "./browser-session.ts";
import type { SharedExample } from "./shared-example.ts";

export function crashTests(shared: () => SharedExample): void {
  test("after a crash after COMMIT, reconciliation commits the lease", async () => {
    const { example } = shared();
    const session = await BrowserSession.start(shared());
    const { page } = session;
    const name = freshName("saved");
    await session.signUpAndCrash("1", name, "after_commit");
    expect(await session.heading()).toBe("Cell 1 is down for a moment");
    // The page reloads when the cell is back.
    await page.waitForURL(`${example.url}/-/cells/1`);
    const lease = page.locator(".lease", { hasText: name }).first();
    await lease.locator(".recovered").waitFor();
    expect(await lease.innerText()).toMatch(/killed.*after COMMIT[\s\S]*committed by reconciliation/);
    await session.open("/-/cells/1");
    expect(await page.innerText(".people")).toContain(name);
    expect((await example.records.find({ type: "HANDLES", value: name }))?.record.status).toBe("ACTIVE");
    expect(await session.open(`/${name}`)).toBe(200);
    await session.close();
  });

  test("after a crash before COMMIT, reconciliation rolls the lease back and frees the names", async () => {
    const { example } = shared();
    const [session, other] = [await BrowserSession.start(shared()), await BrowserSession.start(shared())];
    const { page } = session;
    let name: string;
    // The cell is back after a moment, and rolls the lease back 2.5 s later. A slow browser may miss that.
    for (;;) {
      name = freshName("unsaved");
      await session.signUpAndCrash("1", name, "before_commit");
      expect(await session.heading()).toBe("Cell 1 is down for a moment");
      const found = await example.records.find({ type: "HANDLES", value: name });
      await other.signUp("2", name);
      const isRefused = other.path === "/-/cells/2/sign-up";
      await page.waitForURL(`${example.url}/-/cells/1`);
      if (!isRefused) continue;
      expect(found?.record.status).toBe("LEASE_CREATING");
      break;
    }
    expect(await other.page.innerText("#handle-problem")).toContain("try again in a moment");
    expect(await other.page.inputValue("#handle")).toBe(name);

    const lease = page.locator(".lease", { hasText: name }).first();
    await lease.locator(".recovered").waitFor();
    expect(await lease.innerText()).toMatch(
      /killed.*before COMMIT[\s\S]*fence[\s\S]*rolled back by reconciliation/,
    );
    await session.open("/-/cells/1");
    expect(await page.locator(".people", { hasText: name }).count()).toBe(0);
    await other.signUp("2", name);
    expect(other.path).toBe("/-/cells/2/account");
    await session.close();
    await other.close();
  });
}

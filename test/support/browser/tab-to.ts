import type { Page } from "playwright-core";

/** Presses Tab until an element that matches the selector has the focus. */
export async function tabTo(page: Page, isThere: string): Promise<void> {
  for (let presses = 0; presses < 30; presses += 1) {
    await page.keyboard.press("Tab");
    if ((await page.evaluate(`document.activeElement?.matches(${JSON.stringify(isThere)})`)) === true) return;
  }
  throw new Error(`no Tab leads to ${isThere}`);
}

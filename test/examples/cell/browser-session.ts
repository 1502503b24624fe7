import type { BrowserContextOptions, Page } from "playwright-core";
import { TIMEOUT_MS } from "./eventually.ts";
import type { SharedExample } from "./shared-example.ts";

let names = 0;

/** Returns a name that is still free. */
export const freshName = (start: string): string => `${start}-${(names += 1)}`;

/** A browser session of one user of the example. */
export class BrowserSession {
  readonly page: Page;
  readonly #url: string;

  private constructor(page: Page, url: string) {
    this.page = page;
    this.#url = url;
  }

  static async start(
    { browser, example, complaints }: SharedExample,
    options: BrowserContextOptions = {},
  ): Promise<BrowserSession> {
    const context = await browser.newContext({ reducedMotion: "reduce", ...options });
    context.setDefaultTimeout(TIMEOUT_MS);
    const page = await context.newPage();
    page.on("console", (message) => {
      if (/content security policy|refused to/i.test(message.text())) complaints.push(message.text());
    });
    page.on("pageerror", (error) => complaints.push(error.message));
    return new BrowserSession(page, example.url);
  }

  async open(path: string): Promise<number> {
    const answer = await this.page.goto(this.#url + path);
    return answer?.status() ?? 0;
  }

  async fillSignUp(cell: string, handle: string, email: string): Promise<void> {
    await this.open(`/-/cells/${cell}`);
    await this.page.fill("#handle", handle);
    await this.page.fill("#email", email);
  }

  /** Signs up and waits for the answer, whatever it is. */
  async signUp(cell: string, handle: string, email = `${handle}@example.com`): Promise<void> {
    await this.fillSignUp(cell, handle, email);
    await this.press("Sign up");
  }

  async signUpAndCrash(cell: string, handle: string, at: "before_commit" | "after_commit"): Promise<void> {
    await this.fillSignUp(cell, handle, `${handle}@example.com`);
    await this.page.click("summary");
    await this.page.check(`input[value="${at}"]`);
    await this.press("Sign up");
  }

  async rename(handle: string): Promise<void> {
    await this.page.fill("#handle", handle);
    await this.press("Rename");
  }

  async openStore(name: string): Promise<void> {
    await this.page.fill("#name", name);
    await this.press("Open the store");
  }

  async press(name: string): Promise<void> {
    await Promise.all([
      this.page.waitForEvent("load"),
      this.page.getByRole("button", { name, exact: true }).click(),
    ]);
  }

  get path(): string {
    return new URL(this.page.url()).pathname;
  }

  /** Returns the id of the element that has the focus. */
  focused(): Promise<string | undefined> {
    return this.page.evaluate("document.activeElement?.id");
  }

  heading(): Promise<string> {
    return this.page.innerText("h1");
  }

  async close(): Promise<void> {
    await this.page.context().close();
  }
}

import type { Browser } from "playwright-core";
import { startChromium } from "../../support/browser/chromium.ts";
import { ExampleProcess } from "./example-process.ts";

/** One example and one browser that all tests share. */
export interface SharedExample {
  example: ExampleProcess;
  browser: Browser;
  /** Errors that pages threw, and violations of their security policy. */
  complaints: string[];
}

export async function startSharedExample(): Promise<SharedExample> {
  const example = new ExampleProcess();
  const [browser] = await Promise.all([startChromium(), example.ready()]);
  return { example, browser, complaints: [] };
}

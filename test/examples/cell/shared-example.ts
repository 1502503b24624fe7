import type { Browser } from "playwright-core";
import { startChromium } from "../../support/browser/chromium.ts";
import { ExampleProcess } from "./example-process.ts";

/** One example and one browser, for all tests. */
export interface SharedExample {
  example: ExampleProcess;
  browser: Browser;
  /** What pages threw, and what their security policy refused. */
  complaints: string[];
}

export async function startSharedExample(): Promise<SharedExample> {
  const example = new ExampleProcess();
  const [browser] = await Promise.all([startChromium(), example.ready()]);
  return { example, browser, complaints: [] };
}

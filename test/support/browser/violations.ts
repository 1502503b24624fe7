import axe from "axe-core";
import type { Page } from "playwright-core";

interface Violation {
  id: string;
  nodes: { target: unknown[]; failureSummary?: string }[];
}

/** Returns the violations that axe finds in light and in dark mode. Only the colors differ between them. */
export async function violations(page: Page): Promise<string[]> {
  if ((await page.evaluate("typeof axe")) === "undefined") await page.evaluate(axe.source);
  const light = await violationsIn(page, "light", {});
  const dark = await violationsIn(page, "dark", { runOnly: ["color-contrast"] });
  return [...light, ...dark];
}

async function violationsIn(
  page: Page,
  colorScheme: "light" | "dark",
  options: axe.RunOptions,
): Promise<string[]> {
  await page.emulateMedia({ colorScheme });
  const asked = JSON.stringify({ ...options, resultTypes: ["violations"], preload: false });
  const found: Violation[] = await page.evaluate(`axe.run(${asked}).then(({ violations }) => violations)`);
  return found.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${colorScheme} ${id} ${String(target)} ${failureSummary}`),
  );
}

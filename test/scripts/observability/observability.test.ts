/** `deploy/observability`: alert rules, their runbook, and the example of a configuration. */
import { execFile, execFileSync } from "node:child_process";
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { AGE_BUCKETS_MS, BUCKETS_MS } from "../../../src/coordinator/kernel/metrics/histogram.ts";
import { Exposition } from "../../../src/coordinator/capabilities/metrics/edge/exposition.ts";
import { families } from "../../../src/coordinator/capabilities/families.ts";
import { serveFiles } from "../../hosts/standalone/served.ts";
import { isInPath } from "../../support/setup/programs.ts";
import { alertRules, folder, namesIn, sampleNames, textOf } from "./alert-rules.ts";

const PROMTOOL = "promtool";

const promtool = async (...args: string[]): Promise<string> => {
  const { stdout, stderr } = await promisify(execFile)(PROMTOOL, args);
  return stdout + stderr;
};

describe("each alert", () => {
  const rules = alertRules();

  test("there are some, and no two have the same name", () => {
    expect(rules.length).toBeGreaterThan(10);
    expect(new Set(rules.map(({ name }) => name)).size).toBe(rules.length);
  });

  test.each(rules)(
    "$name waits, has a severity and a summary, and links to its own section",
    ({ name, text }) => {
      expect(text).toMatch(/^ {8}for: \d+[mh]$/m);
      expect(text).toMatch(/^ {10}severity: (?:critical|warning)$/m);
      expect(text).toMatch(/^ {10}summary: \S/m);
      expect(/^ {10}runbook_url: (.+)$/m.exec(text)?.[1]).toBe(
        `docs/operating/alerts.md#${name.toLowerCase()}`,
      );
    },
  );

  test.each(rules)("$name uses only metrics that exist", ({ text }) => {
    const names = namesIn(text.slice(0, text.indexOf("        for:")));
    for (const name of names) expect(sampleNames()).toContain(name);
    if (names.length === 0) expect(text).toContain("expr: up{");
  });

  test("has a section in the runbook, with its meaning and what to do, and there is no other section", () => {
    const page = textOf("docs/operating/alerts.md");
    const [, ...sections] = page.split(/^## /m);
    expect(sections.map((section) => section.slice(0, section.indexOf("\n")))).toEqual(
      rules.map(({ name }) => name),
    );
    for (const section of sections)
      expect([...section.matchAll(/^- \*\*(.+?)\*\*: \S/gm)].map(([, part]) => part)).toEqual([
        "Meaning",
        "Look at",
        "Do",
      ]);
  });
});

/** A sample of every family, and of every bucket. */
function everyFamily(): Exposition {
  const exposition = new Exposition();
  for (const [name, family] of Object.entries(families)) {
    const { type, labels } = family;
    const given = Object.fromEntries(labels.map((label) => [label, 'a "b"\\\n']));
    const isHistogram = type === "histogram" || type === "gaugehistogram";
    const bounds = type === "histogram" ? BUCKETS_MS : AGE_BUCKETS_MS;
    const counts = [...bounds.map(() => 1), 1];
    exposition.addSample(name, family, given, isHistogram ? { counts, sumMs: 1_500 } : 1.5);
  }
  return exposition;
}

describe.skipIf(!isInPath(PROMTOOL))("promtool", () => {
  const lint = (text: string): string =>
    execFileSync(PROMTOOL, ["check", "metrics"], { input: text, encoding: "utf8" });

  test("finds no fault in any family", () => {
    expect(lint(everyFamily().prometheusText())).toBe("");
  });

  test("finds no fault in what a coordinator answers", async () => {
    const served = await serveFiles(["1"], {});
    try {
      const operator = { authorization: `Bearer ${served.keys.operator}` };
      const answer = await fetch(`${served.url}/metrics`, { headers: operator });
      expect(answer.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
      const text = await answer.text();
      expect(text).toContain("\nleasehold_up{");
      expect(lint(text)).toBe("");
    } finally {
      await served.close();
    }
  });

  test("accepts the rules", async () => {
    expect(await promtool("check", "rules", join(folder, "alerts.yml"))).toContain(
      `SUCCESS: ${alertRules().length} rules found`,
    );
  });

  test("accepts the example of a configuration", async () => {
    expect(await promtool("check", "config", "--syntax-only", join(folder, "prometheus.yml"))).toContain(
      "SUCCESS",
    );
  });

  test("finds that alerts fire with a fault and are silent without one", async () => {
    // The file with the tests names the rules without a folder.
    const together = mkdtempSync(join(tmpdir(), "alerts-"));
    try {
      copyFileSync(join(folder, "alerts.yml"), join(together, "alerts.yml"));
      const file = join(together, "alerts-test.yml");
      copyFileSync(join(import.meta.dirname, "alerts-test.yml"), file);
      expect(await promtool("test", "rules", file)).toContain("SUCCESS");
    } finally {
      rmSync(together, { recursive: true });
    }
  });
});

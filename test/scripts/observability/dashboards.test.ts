/** `deploy/observability/dashboards`, for Grafana. */
import { describe, expect, test } from "vitest";
import { namesIn, sampleNames } from "./alert-rules.ts";
import { queriesOf, readDashboards } from "./dashboards.ts";

const dashboards = readDashboards();

test("there is one for the whole deployment, for a cell and for routers", () => {
  expect(dashboards.map(({ uid }) => uid).toSorted()).toEqual([
    "leasehold-cell",
    "leasehold-overview",
    "leasehold-router",
  ]);
});

describe.each(dashboards)("$title", (dashboard) => {
  const { panels, templating } = dashboard;

  test("uses only metrics that exist, and at least one in each query", () => {
    const known = sampleNames();
    for (const query of queriesOf(dashboard)) {
      const names = namesIn(query);
      expect(names, query).not.toEqual([]);
      for (const name of names) expect(known).toContain(name);
    }
  });

  test("has only variables that it declares", () => {
    const declared = templating.list.map(({ name }) => name);
    const used = JSON.stringify(panels).matchAll(/\$\{?([a-z_]+)/g);
    for (const [, name = ""] of used) expect([...declared, "__rate_interval"]).toContain(name);
    for (const { type, query } of templating.list)
      if (type === "query") for (const name of namesIn(query)) expect(sampleNames()).toContain(name);
  });

  test("has panels with a title, a description, a unit and the chosen data source", () => {
    for (const { title, description, datasource, fieldConfig, targets } of panels) {
      expect(title).not.toBe("");
      expect(description, title).toMatch(/\S\.$/);
      expect(fieldConfig.defaults.unit, title).not.toBe("");
      expect(datasource).toEqual({ type: "prometheus", uid: "${datasource}" });
      expect(new Set(targets.map(({ refId }) => refId)).size).toBe(targets.length);
    }
    for (const values of [panels.map(({ id }) => id), panels.map(({ title }) => title)])
      expect(new Set<number | string>(values).size).toBe(panels.length);
  });

  test("has no two panels in the same place", () => {
    const places = new Set<string>();
    for (const { title, gridPos } of panels) {
      expect(gridPos.x + gridPos.w, title).toBeLessThanOrEqual(24);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1)
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
          expect(places.has(`${x} ${y}`), title).toBe(false);
          places.add(`${x} ${y}`);
        }
    }
  });
});

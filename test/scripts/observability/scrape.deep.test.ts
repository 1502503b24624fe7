/** A real Prometheus scrapes a running coordinator. */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { families } from "../../../src/coordinator/capabilities/families.ts";
import { Authority } from "../../hosts/grpc/certificates.ts";
import { serveFiles, type Served } from "../../hosts/standalone/served.ts";
import { Client } from "../../suites/conformance/client.ts";
import { mintKeyOf } from "../../suites/conformance/cases.ts";
import { claim, freshName } from "../../suites/conformance/leases.ts";
import { isInPath } from "../../support/setup/programs.ts";
import { alertRules } from "./alert-rules.ts";
import { queriesOf, readDashboards } from "./dashboards.ts";
import { Prometheus } from "./prometheus.ts";

describe.skipIf(!isInPath("prometheus"))("Prometheus", () => {
  let coordinator: Served;
  let api: Client;
  let prometheus: Prometheus;

  beforeAll(async () => {
    coordinator = await serveFiles(["1", "2"], {});
    const { keys, url } = coordinator;
    const keyOf = (name: string): string =>
      name === "operator" ? keys.operator : name.startsWith("cell ") ? keys.cell(name.slice(5)) : name;
    api = new Client({ url, fetch, keyOf });
    for (const cell of ["1", "2"])
      await api.json(201, "POST", "/v1/admin/cells", {
        body: { cell_id: cell, name: cell, address: `https://cell-${cell}.example` },
      });
    const name = freshName();
    const begin = (cell: string) =>
      api.send("POST", `/v1/cells/${cell}/leases`, {
        key: `cell ${cell}`,
        body: { creates: [claim(name)] },
      });
    const { lease } = (await begin("1")).json as { lease: { uuid: string } };
    for (const outcome of ["commit", "rollback"])
      await api.send("POST", `/v1/cells/1/leases/${lease.uuid}/${outcome}`, { key: "cell 1" });
    expect((await begin("2")).status).toBe(409);
    const { lease: other } = (
      await api.send("POST", "/v1/cells/2/leases", {
        key: "cell 2",
        body: { creates: [claim(freshName())] },
      })
    ).json as { lease: { uuid: string } };
    await api.json(200, "POST", `/v1/cells/2/leases/${other.uuid}/rollback`, { key: "cell 2" });
    await api.json(200, "PUT", "/v1/cells/1/status", {
      key: "cell 1",
      body: {
        sdk: { name: "my-cell", version: "3.1.0" },
        reconciliation: { outcome: "done", stale_leases: 0 },
        verification: { status: "done", counts: { missing: 2 } },
      },
    });
    await api.json(201, "POST", "/v1/admin/webhooks", {
      body: { url: "https://hooks.example.com/leasehold", enabled: false },
    });
    const authority = new Authority();
    const certificate = readFileSync(authority.certFile, "utf8");
    authority.close();
    await api.json(200, "PUT", "/v1/admin/identities", {
      body: { version: 0, issuers: [], authorities: [{ name: "cells", certificate, rules: [] }] },
    });
    // Some families are there only while the deployment gets more shards.
    await api.json(200, "POST", "/v1/admin/growth", { body: { shards: 32, reason: "a test" } });
    const scraper = await mintKeyOf("scraper", api);
    await coordinator.host.cron();
    prometheus = await Prometheus.start(new URL(url).host, scraper);
    const isUp = async (): Promise<void> =>
      expect(await prometheus.targets()).toEqual([{ health: "up", lastError: "" }]);
    await vi.waitFor(isUp, { timeout: 60_000, interval: 200 });
  });

  afterAll(async () => {
    await prometheus.stop();
    await coordinator.close();
  });

  test("reads every family, with its type", async () => {
    for (const [name, { type }] of Object.entries(families))
      expect([name, await prometheus.typeOf(name)]).toEqual([name, type]);
  });

  test("reads what has happened", async () => {
    expect(await prometheus.query('leasehold_begins_total{cell="2"} > 0')).toEqual([
      { labels: { cell: "2", result: "conflict", reason: "taken" }, value: 1 },
      { labels: { cell: "2", result: "granted" }, value: 1 },
    ]);
    expect(await prometheus.query('sum by (by) (leasehold_commits_total{cell="1"})')).toEqual([
      { labels: { by: "cell" }, value: 1 },
    ]);
    const ups = await prometheus.query("count(leasehold_up == 1)");
    expect(ups.map(({ value }) => value)).toEqual([1 + 1 + 4 + 2]);
    const [sinceCron] = await prometheus.query("time() - leasehold_cron_end_timestamp_seconds");
    expect(sinceCron?.value).toBeLessThan(600);
    const quantile = "histogram_quantile(0.9, sum by (le) (leasehold_begin_duration_seconds_bucket))";
    const [answer] = await prometheus.query(quantile);
    expect(answer?.value).toBeGreaterThan(0);
  });

  test("understands every query of the dashboards, and answers those about this coordinator", async () => {
    const dashboards = readDashboards();
    for (const query of dashboards.flatMap(queriesOf))
      expect([query, await prometheus.errorOf(query)]).toEqual([query, undefined]);
    const cell = dashboards.find(({ uid }) => uid === "leasehold-cell");
    const gauges = cell === undefined ? [] : queriesOf(cell).filter((query) => !query.includes("rate("));
    expect(gauges.length).toBeGreaterThan(5);
    for (const query of gauges)
      expect([query, (await prometheus.query(query)).length > 0]).toEqual([query, true]);
  });

  test("evaluates every alert rule", async () => {
    const names = alertRules().map(({ name }) => ({ name, health: "ok" }));
    await expect
      .poll(async () => (await prometheus.rules()).map(({ name, health }) => ({ name, health })))
      .toEqual(names);
  });
});

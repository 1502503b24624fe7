/** `GET /metrics` of a whole deployment in workerd. */
import { beforeAll, expect, test } from "vitest";
import { families } from "../../../../../src/coordinator/capabilities/families.ts";
import { mintKeyOf } from "../../../../suites/conformance/cases.ts";
import { claim, freshName } from "../../../../suites/conformance/leases.ts";
import { readOpenMetrics, valueOf, type ReadFamily } from "../../../../support/open-metrics.ts";
import { Api, env, startDeployment } from "../../../../support/workerd/api.ts";
import { counting } from "../../../../support/workerd/counting.ts";

const OPEN = "application/openmetrics-text; version=1.0.0";
const TEXT = "text/plain; version=0.0.4";

let api: Api;

beforeAll(async () => {
  api = await startDeployment("1", "2");
});

async function read(using: Api): Promise<ReadonlyMap<string, ReadFamily>> {
  const { status, headers, text } = await using.send("GET", "/metrics", {
    key: "operator",
    headers: { accept: OPEN },
  });
  expect(status).toBe(200);
  expect(headers.get("content-type")).toBe(`${OPEN}; charset=utf-8`);
  expect(headers.get("cache-control")).toBe("no-store");
  return readOpenMetrics(text);
}

const send = (cell: string, names: string[]) =>
  api.send("POST", `/v1/cells/${cell}/leases`, {
    key: `cell ${cell}`,
    body: { creates: names.map((name) => claim(name)) },
  });

test("begins, lookups and commits of a deployment are counted, and every sample is as declared", async () => {
  const name = freshName();
  const { json } = await send("1", [name]);
  const { lease } = json as { lease: { uuid: string } };
  expect((await send("2", [name])).status).toBe(409);
  await api.json(200, "POST", `/v1/cells/1/leases/${lease.uuid}/commit`, { key: "cell 1" });
  await send("1", [freshName()]);
  await api.json(200, "GET", `/v1/records/ROUTES/${name}`, { key: "router" });
  const read1 = await read(api);
  expect(valueOf(read1, "leasehold_begins", { cell: "1", result: "granted" })).toBe(2);
  expect(valueOf(read1, "leasehold_begins", { cell: "2", result: "conflict", reason: "leased" })).toBe(1);
  expect(valueOf(read1, "leasehold_commits", { cell: "1", by: "cell" })).toBe(1);
  expect(valueOf(read1, "leasehold_leases_outstanding", { cell: "1" })).toBe(1);
  const begins = read1.get("leasehold_begin_duration_seconds")?.samples ?? [];
  const counts = begins.filter((sample) => sample.name.endsWith("_count"));
  expect(counts.map(({ labels, value }) => [labels["cell"], value])).toEqual([
    ["1", 2],
    ["2", 1],
  ]);
  const lookups = read1.get("leasehold_lookups")?.samples ?? [];
  expect(lookups.reduce((sum, { value }) => sum + value, 0)).toBe(1);
  for (const [family, { type, help, samples }] of read1) {
    const declared = families[family];
    expect({ type, help }).toEqual({ type: declared?.type, help: declared?.help });
    for (const { labels } of samples) {
      const own = Object.keys(labels).filter((label) => label !== "le");
      expect(own).toEqual(declared?.labels);
    }
  }
});

test.each([
  [undefined, TEXT],
  ["*/*", TEXT],
  ["text/plain", TEXT],
  ["text/plain;version=0.0.4;q=1,*/*;q=0.1", TEXT],
  // As versions of Prometheus send it, older ones first.
  ["application/openmetrics-text; version=0.0.1,text/plain;version=0.0.4;q=0.5,*/*;q=0.1", TEXT],
  [
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75," +
      "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
    OPEN,
  ],
  [
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5," +
      "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;q=0.3," +
      "text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
    OPEN,
  ],
  ['Application/OpenMetrics-Text; version="1.0.0"', OPEN],
  ["application/openmetrics-text", OPEN],
  ["application/openmetrics-text;q=0.3,text/plain;q=0.9", TEXT],
  ["application/openmetrics-text;q=0,*/*", TEXT],
  ["application/vnd.google.protobuf;encoding=delimited;q=0.7,text/plain;version=0.0.4;q=0.3", TEXT],
])("Accept: %s is answered with %s", async (accept, type) => {
  const { status, headers, text } = await api.send("GET", "/metrics", {
    headers: accept === undefined ? {} : { accept },
  });
  expect([status, headers.get("content-type")]).toEqual([200, `${type}; charset=utf-8`]);
  expect(text.endsWith("\n# EOF\n")).toBe(type === OPEN);
});

test("both formats have the same samples, each behind the head of its family", async () => {
  const answers = [OPEN, TEXT].map((accept) => api.send("GET", "/metrics", { headers: { accept } }));
  const [open = [], text = []] = (await Promise.all(answers)).map((answer) => answer.text.trim().split("\n"));
  const samplesOf = (lines: string[]): string[] => lines.filter((line) => !line.startsWith("#")).toSorted();
  expect(samplesOf(text)).toEqual(samplesOf(open));
  const heads = new Set<string>();
  let [name, type] = ["", ""];
  for (const [index, line] of text.entries()) {
    const [, keyword, family = "", rest = ""] = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line) ?? [];
    if (keyword === "HELP") {
      expect(text[index + 1]).toMatch(RegExp(`^# TYPE ${family} (counter|gauge|histogram)$`));
      expect(heads).not.toContain(family);
      heads.add(family);
    } else if (keyword === "TYPE") [name, type] = [family, rest];
    else {
      const ends = type === "histogram" ? "_(bucket|sum|count)" : "";
      expect(line).toMatch(RegExp(`^${name}${ends}(\\{.*\\})? [-+.\\de]+$`));
      if (type === "counter") expect(name).toMatch(/_total$/);
    }
  }
});

test("a scrape costs one message for each object, and none for 15 s after it", async () => {
  const counted = counting(env);
  const own = new Api({ ...counted.env });
  await read(own);
  const { length } = counted.calls;
  expect(counted.calls.filter((call) => call.endsWith(".metrics")).toSorted()).toEqual([
    "CELL_LEDGER.metrics",
    "CELL_LEDGER.metrics",
    ...Array.from({ length: 4 }, () => "CLAIM_SHARD.metrics"),
    "DIRECTORY.metrics",
  ]);
  await read(own);
  expect(counted.calls).toHaveLength(length);
});

test("a key of the role scraper reads metrics until it is revoked, and may call nothing else", async () => {
  const { key, id } = await api.json<{ key: `lhk_${string}`; id: string }>(201, "POST", "/v1/admin/keys", {
    body: { role: "scraper" },
  });
  expect((await api.send("GET", "/metrics", { key })).status).toBe(200);
  await api.problem(403, "GET", "/v1/limits", { key });
  await api.json(200, "POST", `/v1/admin/keys/${id}/revoke`);
  await api.problem(401, "GET", "/metrics", { key });
  expect((await api.send("GET", "/metrics", { key: await mintKeyOf("scraper", api) })).status).toBe(200);
});

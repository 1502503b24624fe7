/** `leasehold doctor` against planted faults: exactly the check for each of them notices it. */
import { expect, test } from "vitest";
import { create, spoil, startCommandLine, type CommandLine, type RunOptions } from "./command-line.ts";

interface Found {
  name: string;
  state: string;
  next?: string;
}

async function checksOf(line: CommandLine, options?: RunOptions): Promise<Map<string, Found>> {
  const { checks } = (await line.json(["doctor"], options)) as unknown as { checks: Found[] };
  return new Map(checks.map((check) => [check.name, check]));
}

const minutesAgo = (minutes: number): string => new Date(Date.now() - minutes * 60_000).toISOString();

const ready = (parts: object): (() => Response) => {
  const run = { finished_at: minutesAgo(0), cells_failed: 0 };
  return () => Response.json({ status: "ok", d1: "up", last_cron_run: run, ...parts });
};

/** The metrics of an empty shard and of one that holds names. */
const holding = (samples: Record<string, number>): Response => {
  const lines = Object.entries(samples).flatMap(([family, value]) => [
    `leasehold_holds${family}{shard="0"} ${family === "_limit" ? value : 0}\n`,
    `leasehold_holds${family}{shard="1"} ${value}\n`,
  ]);
  return new Response(lines.join(""));
};

/** Answers requests as a proxy in front of the coordinator and the cells could. */
function answer(
  line: CommandLine,
  proxy: (url: string, real: (url: string) => Promise<Response>) => Promise<Response>,
): void {
  const { coordinator } = line;
  const fetch: typeof coordinator.fetch = (url, init) =>
    proxy(url instanceof Request ? url.url : url.toString(), (to) => coordinator.fetch(to, init));
  Object.assign(line, { coordinator: { ...coordinator, fetch } });
}

/** Plants a fault, and returns with what the command runs. */
type Plant = (line: CommandLine) => Promise<RunOptions | void> | RunOptions | void;

const plants: readonly [fault: string, check: string, state: "fail" | "warn", plant: Plant][] = [
  ["the URL of something else", "url", "fail", (line) => spoil(line, "/healthz", () => new Response(""))],
  [
    "a URL without TLS",
    "tls",
    "fail",
    (line) => {
      answer(line, (url, real) => real(url.replace("http:", "https:")));
      return { env: { LEASEHOLD_URL: "http://leasehold.test" } };
    },
  ],
  [
    "a clock that is wrong",
    "clock",
    "fail",
    (line) =>
      spoil(line, "/healthz", () =>
        Response.json({ version: "1", placement: "p" }, { headers: { date: minutesAgo(-2) } }),
      ),
  ],
  [
    "an expired key",
    "key",
    "fail",
    async (line) => {
      const { key } = await line.client().keys.mint({ role: "operator", expires_in_s: 60 });
      await line.coordinator.advance(120_000);
      return { env: { LEASEHOLD_KEY: key }, now: () => Date.now() + 120_000 };
    },
  ],
  [
    "a revoked key",
    "key",
    "fail",
    async (line) => {
      const { key, id } = await line.client().keys.mint({ role: "operator" });
      await line.client().keys.revoke(id);
      await line.coordinator.advance(60_000);
      return { env: { LEASEHOLD_KEY: key } };
    },
  ],
  [
    "a key of another role",
    "role",
    "warn",
    (line) => ({ env: { LEASEHOLD_KEY: line.coordinator.keys.router } }),
  ],
  [
    "a part that is down",
    "parts",
    "fail",
    (line) => spoil(line, "/readyz", () => Response.json({ failed: ["shard 2"] }, { status: 503 })),
  ],
  ["D1 that is down", "d1", "fail", (line) => spoil(line, "/readyz", ready({ d1: "down" }))],
  [
    "D1 that lacks a migration",
    "d1",
    "warn",
    (line) => spoil(line, "/readyz", ready({ d1: "outdated", missing_migrations: ["0001_later.sql"] })),
  ],
  [
    "a cron that is silent",
    "cron",
    "fail",
    (line) =>
      spoil(line, "/readyz", ready({ last_cron_run: { finished_at: minutesAgo(10), cells_failed: 0 } })),
  ],
  [
    "copies in D1 that are old",
    "copies in d1",
    "fail",
    (line) =>
      answer(line, async (url, real) => {
        const response = await real(url);
        if (!url.includes("/v1/leases/stale")) return response;
        const page = (await response.json()) as object;
        return Response.json({ ...page, last_pulled_at: minutesAgo(10) });
      }),
  ],
  [
    "a stale lease",
    "stale leases",
    "fail",
    async (line) => {
      await line.client("2").leases.begin({ creates: [create("ada")] });
      await line.coordinator.advance(3_600_000);
      await line.coordinator.cron();
      return { now: () => Date.now() + 3_600_000 };
    },
  ],
  [
    "a shard that holds almost as many names as it may",
    "holds",
    "warn",
    (line) => spoil(line, "/metrics", () => holding({ "": 900, _of_one_cell: 400, _limit: 1_000 })),
  ],
  [
    "a cell that holds almost as many names as it may",
    "holds",
    "warn",
    (line) => spoil(line, "/metrics", () => holding({ "": 450, _of_one_cell: 410, _limit: 1_000 })),
  ],
  ["metrics without shards", "holds", "warn", (line) => spoil(line, "/metrics", () => holding({}))],
  [
    "metrics that can't be read",
    "holds",
    "fail",
    (line) => spoil(line, "/metrics", () => new Response("", { status: 503 })),
  ],
  [
    "an address that routers refuse",
    "addresses",
    "fail",
    async (line) => void (await line.client().cells.change("2", { address: "http://cell-2.test/app" })),
  ],
  [
    "a cell whose address does not answer",
    "cells' answers",
    "warn",
    (line) =>
      answer(line, (url, real) =>
        url.startsWith("https://cell-1.test") ? Promise.reject(new TypeError("fetch failed")) : real(url),
      ),
  ],
  ["a frozen cell", "cells", "warn", async (line) => void (await line.client().cells.freeze("1"))],
];

test.each(plants)("%s", async (_, name, state, plant) => {
  const line = await startCommandLine();
  await line.coordinator.cron();
  answer(line, (url, real) =>
    /^https?:\/\/cell-/.test(url) ? Promise.resolve(new Response("")) : real(url),
  );
  const healthy = await checksOf(line);
  const options = (await plant(line)) ?? {};
  const checks = await checksOf(line, options);
  // Checks that need what the fault has taken away are left out.
  const noticed = [...checks.values()].filter(
    (check) => check.state !== (healthy.get(check.name)?.state ?? "ok"),
  );
  expect(noticed.map((check) => [check.name, check.state])).toEqual([[name, state]]);
  expect(noticed[0]?.next).toMatch(/^(leasehold \w+|timedatectl status|npx wrangler d1 migrations apply)/);
  expect((await line.run(["doctor"], options)).code).toBe(state === "fail" ? 1 : 0);
});

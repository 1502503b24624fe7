/** A slice of the reads while names move. `npm run test:deep` runs more of them. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Bounds } from "./churn-judge.ts";
import { Churn, Readers } from "./churn.ts";
import { Stage } from "./stage.ts";

/** The shortest and the longest run. In between it ends as soon as every kind of answer was given. */
const SHORTEST_MS = 10_000;
const LONGEST_MS = 60_000;
const KINDS = ["found", "free", "healed"] as const;
const REPORTS_OFF = { ROUTER_REPORTS: "off" };
/** Long enough that wrong answers stay wrong for longer than any bound here. */
const LONG = "60000";

const routers = {
  reports: {},
  age: REPORTS_OFF,
  "late reports": { ROUTER_BOUND_MS: LONG },
  "long age": { ...REPORTS_OFF, ROUTER_MAX_AGE_MS: LONG },
} as const;
type RouterName = keyof typeof routers;

const withReports: Bounds = { foundMs: 2_000, noneMs: 2_000 };
const byAge: Bounds = { foundMs: 5_000, noneMs: 1_000 };
const judged: [string, RouterName, Bounds][] = [
  ["2 s with reports", "reports", withReports],
  ["5 s by age", "age", byAge],
];

const folder = mkdtempSync(join(tmpdir(), "leasehold-churn-"));
const stage = new Stage({ host: "start", folder });
const readers = new Map<RouterName, Readers>();
let churn: Churn;

/** All routers are asked while the same names move. */
beforeAll(async () => {
  await stage.start();
  churn = new Churn(stage, 1);
  for (const name of Object.keys(routers) as RouterName[])
    readers.set(name, new Readers(await stage.startRouter(routers[name]), churn.names, 1));
  const end = new AbortController();
  const runs = [churn.run(end.signal), ...[...readers.values()].map((each) => each.run(100, end.signal))];
  await Promise.all([...runs, givenAll().then(() => end.abort())]);
});

/** Few questions come between a move and its report, so how long this takes is chance. */
async function givenAll(): Promise<void> {
  const startMs = performance.now();
  const isMissing = (): boolean =>
    judged.some(([, name]) => KINDS.some((kind) => readers.get(name)?.counts[kind] === 0));
  await sleep(SHORTEST_MS);
  while (isMissing() && performance.now() - startMs < LONGEST_MS) await sleep(100);
}

afterAll(async () => {
  await stage.stop();
  rmSync(folder, { recursive: true, force: true });
});

function complaintsOf(name: RouterName, bounds: Bounds): string[] {
  const each = readers.get(name);
  if (each === undefined) throw new Error(`${name} was not asked`);
  return each.judge(churn.owners, bounds);
}

test.each(judged)(
  "[Q5] [Q6] [Q7] case 1: while names move, no answer is older than %s",
  (_, name, bounds) => {
    expect(complaintsOf(name, bounds)).toEqual([]);
    const counts = readers.get(name)?.counts;
    for (const kind of KINDS) expect(counts?.[kind], kind).toBeGreaterThan(0);
  },
);

test.each<[string, RouterName, Bounds]>([
  ["the routers' own bound", "reports", { foundMs: 0, noneMs: 0 }],
  ["reports that come too late", "late reports", withReports],
  ["answers that live for too long", "long age", byAge],
])("finds %s", (_, name, bounds) => {
  expect(complaintsOf(name, bounds)).toContainEqual(expect.stringMatching(/was not true for \d+ ms/));
});

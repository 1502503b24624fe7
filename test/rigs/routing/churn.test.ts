/** A slice of the reads while names move. `npm run test:deep` runs more of them. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Bounds } from "./churn-judge.ts";
import { Churn, Readers } from "./churn.ts";
import { Stage } from "./stage.ts";

/** The run ends as soon as the routers have said this much, however long that takes. */
const LEAST = { changes: 60, found: 500, free: 50, healed: 1 } as const;
const KINDS = ["found", "free", "healed"] as const;
const SLOW_MS = 900_000;
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

/** Routers that are wrong by these bounds, so that the judge can fail. */
const weaknesses: [string, RouterName, Bounds][] = [
  ["the routers' own bound", "reports", { foundMs: 0, noneMs: 0 }],
  ["reports that come too late", "late reports", withReports],
  ["answers that live for too long", "long age", byAge],
];
const WEAKNESS = /was not true for \d+ ms/;

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
  const runs = [churn.run(end.signal), ...[...readers.values()].map((each) => each.run(50, end.signal))];
  const isOver = (async () => {
    while (isMissing()) await sleep(500);
  })();
  try {
    await Promise.race([isOver, ...runs]);
  } finally {
    end.abort();
    await Promise.all(runs);
  }
}, SLOW_MS);

/** Few questions come between a move and its report, so how long this takes is chance. */
const isMissing = (): boolean =>
  churn.changes < LEAST.changes ||
  judged.some(([, name]) => KINDS.some((kind) => countsOf(name)[kind] < LEAST[kind])) ||
  weaknesses.some(([, name, bounds]) => !complaintsOf(name, bounds).some((text) => WEAKNESS.test(text)));

afterAll(async () => {
  await stage.stop();
  rmSync(folder, { recursive: true, force: true });
});

function readersOf(name: RouterName): Readers {
  const each = readers.get(name);
  if (each === undefined) throw new Error(`${name} was not asked`);
  return each;
}

const countsOf = (name: RouterName): Readers["counts"] => readersOf(name).counts;
const complaintsOf = (name: RouterName, bounds: Bounds): string[] =>
  readersOf(name).judge(churn.owners, bounds);

test.each(judged)(
  "[Q5] [Q6] [Q7] case 1: while names move, no answer is older than %s",
  (_, name, bounds) => {
    expect(complaintsOf(name, bounds)).toEqual([]);
    for (const kind of KINDS) expect(countsOf(name)[kind], kind).toBeGreaterThanOrEqual(LEAST[kind]);
  },
);

test.each(weaknesses)("finds %s", (_, name, bounds) => {
  expect(complaintsOf(name, bounds)).toContainEqual(expect.stringMatching(WEAKNESS));
});

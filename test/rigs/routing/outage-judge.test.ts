import { expect, test } from "vitest";
import { OutageJudge, type Asked, type Outage, type Phase } from "./outage-judge.ts";
import type { Received } from "./requests.ts";

const outage: Outage = { beganMs: 900, fromMs: 1_000, toMs: Infinity, endedMs: Infinity };
const answer = (status: number, headers: Received["headers"], body: string, sentMs = 1_500): Received => ({
  path: "/name",
  method: "GET",
  sentMs,
  receivedMs: sentMs + 5,
  status,
  headers,
  body,
});
const byCell = (cell: string, body = cell): Received => answer(200, { "leasehold-cell": cell }, body);
const absent = answer(404, {}, '{"reason":"NO_CELL"}');
const later = answer(503, { "retry-after": "1" }, "");
const unreachable = answer(502, {}, JSON.stringify({ title: "The cell does not answer" }));
const complaintsAbout = (asked: Asked, given: Received, phase: Phase): string[] => {
  const judge = new OutageJudge(2_000);
  judge.judge(asked, given, phase, phase === "down" ? outage : undefined);
  return judge.complaints;
};

test.each<[string, Asked, Received, Phase]>([
  ["a found name is unavailable", { kind: "warm", owner: "1" }, later, "down"],
  ["a found name is absent", { kind: "warm", owner: "1" }, absent, "down"],
  ["another cell answers", { kind: "warm", owner: "1" }, byCell("2"), "down"],
  ["another cell answers than the router says", { kind: "warm", owner: "1" }, byCell("1", "2"), "up"],
  ["a page of a found name is absent", { kind: "page", owner: "1" }, absent, "down"],
  ["a name that was never seen is absent", { kind: "unseen", owner: "1" }, absent, "down"],
  ["a name that was never seen is found", { kind: "unseen", owner: "1" }, byCell("1"), "down"],
  ["the default cell gets a name", { kind: "unheard" }, byCell("1"), "up"],
  ["a name is absent although nobody can know it", { kind: "unheard" }, absent, "down"],
  [
    "a negative answer outlives the bound",
    { kind: "missing" },
    answer(404, {}, '{"reason":"NO_CELL"}', 3_100),
    "down",
  ],
  ["a refusal says no time", { kind: "unseen", owner: "1" }, answer(503, {}, ""), "down"],
  ["a request has no answer", { kind: "unseen", owner: "1" }, answer(0, {}, "socket hang up"), "changing"],
  ["a cell is chosen for a name that was never seen", { kind: "unseen", owner: "1" }, unreachable, "down"],
  ["a cell is chosen for a free name", { kind: "missing" }, unreachable, "up"],
  ["the router fails", { kind: "page", owner: "1" }, answer(502, {}, ""), "changing"],
])("complains if %s", (_, asked, given, phase) => {
  expect(complaintsAbout(asked, given, phase)).toHaveLength(1);
});

test.each<[string, Asked, Received, Phase]>([
  ["a found name keeps its cell", { kind: "warm", owner: "1" }, byCell("1"), "down"],
  ["the cell of a found name is too slow", { kind: "warm", owner: "1" }, unreachable, "down"],
  ["a name that was never seen is unavailable", { kind: "unseen", owner: "1" }, later, "down"],
  ["a negative answer is within the bound", { kind: "missing" }, absent, "down"],
  ["a free name is absent again", { kind: "unheard" }, absent, "up"],
])("accepts that %s", (_, asked, given, phase) => {
  expect(complaintsAbout(asked, given, phase)).toEqual([]);
});

test.each([
  { right: 1, hasty: 99, slow: 0, complaints: 1 },
  { right: 10, hasty: 2, slow: 99, complaints: 0 },
])("$right right answers, $hasty hasty and $slow slow failures: $complaints complaints", (given) => {
  const judge = new OutageJudge(2_000);
  const judgeAll = (count: number, received: Received): void => {
    for (let n = 0; n < count; n += 1) judge.judge({ kind: "warm", owner: "1" }, received, "down", outage);
  };
  judgeAll(given.right, byCell("1"));
  judgeAll(given.hasty, unreachable);
  judgeAll(given.slow, { ...unreachable, receivedMs: unreachable.sentMs + 10_000 });
  judge.judgeShares();
  expect(judge.complaints).toHaveLength(given.complaints);
});

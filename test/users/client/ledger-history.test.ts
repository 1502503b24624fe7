/** Tests of the points of the ledger that a client remembers and sends. */
import { expect, test } from "vitest";
import { LedgerHistory } from "../../../src/users/client/ledger-history.ts";
import { transferRoutes } from "../../../src/coordinator/capabilities/transfer/edge/routes.ts";
import { HISTORY_HEADER } from "../../../src/coordinator/capabilities/loss/history.ts";
import {
  historyHeaderOf,
  readHistoryHeader,
} from "../../../src/coordinator/capabilities/loss/edge/history-header.ts";
import * as client from "../../../src/users/client/ledger-history.ts";
import { committed, fakeClient, granted, leaseOf, problem, unavailable, UUID, type Reply } from "./fake.ts";

const withPoint = (reply: Reply, point: string): Reply => ({
  ...reply,
  headers: { [HISTORY_HEADER]: point },
});
const batch = { destroys: [{ bucket: { type: "ROUTES" as const, value: "acme" } }] };
const at = (incarnation: number, position: number) => ({ incarnation, position });

test("the client and the Worker write the header in the same way", () => {
  expect(client.HISTORY_HEADER).toBe(HISTORY_HEADER);
  expect(client.headerOf(at(16_777_217, 42))).toBe("16777217.42");
  expect(historyHeaderOf(at(16_777_217, 42))).toBe("16777217.42");
  expect(readHistoryHeader("16777217.42")).toEqual({ ok: true, value: at(16_777_217, 42) });
});

test.each([
  "",
  "1",
  "1.",
  ".1",
  "0.1",
  "01.1",
  "1.01",
  "1.2.3",
  "-1.2",
  "1e3.2",
  "1.2 ",
  "9999999999999999.1",
])("the header %j is refused by its name", (given) => {
  expect(readHistoryHeader(given)).toMatchObject({
    ok: false,
    refusal: { code: "INVALID_ARGUMENT", field: HISTORY_HEADER },
  });
});

test("[L7] every call about leases sends the newest point that an answer had", async () => {
  const page = { status: 200, json: { leases: [], next_page_token: "" } };
  const { client: made, sent } = fakeClient([
    withPoint(granted, "1.5"),
    withPoint(committed, "1.6"),
    withPoint({ status: 200, json: { lease: leaseOf("COMMITTED") } }, "1.6"),
    withPoint(page, "1.6"),
    withPoint({ status: 200, json: { lease: leaseOf("ROLLED_BACK") } }, "1.7"),
  ]);
  await made.leases.begin(batch, { uuid: UUID });
  await made.leases.commit(UUID);
  await made.leases.get(UUID);
  await made.leases.list().all();
  await made.leases.rollback(UUID);
  expect(sent.map(({ headers }) => headers[HISTORY_HEADER])).toEqual([undefined, "1.5", "1.6", "1.6", "1.6"]);
  expect(made.history.points).toEqual([at(1, 7)]);
});

test("[L7] so does every call about transfers", async () => {
  const id = `7-${UUID}`;
  const { example } = transferRoutes.getTransfer.responses[200];
  const transfer = { status: 200, json: { ...example } };
  const page = { status: 200, json: { transfers: [], next_page_token: "" } };
  const { client: made, sent } = fakeClient([
    withPoint(transfer, "1.5"),
    withPoint(transfer, "1.6"),
    withPoint(transfer, "1.7"),
    withPoint(page, "1.8"),
    withPoint(transfer, "1.9"),
    transfer,
    transfer,
  ]);
  await made.transfers.get(id);
  await made.transfers.accept(id);
  await made.transfers.report(id, { count: 0, hash: "0".repeat(32) });
  await made.transfers.list().all();
  await made.transfers.abort(id);
  // These are calls to other ledgers, so their answers have no point.
  await made.transfers.prepare({ to: "8", scope: "9970" });
  await made.transfers.cut(`8-${UUID}`);
  const points = sent.map(({ headers }) => headers[HISTORY_HEADER]);
  expect(points).toEqual([undefined, "1.5", "1.6", "1.7", "1.8", "1.9", "1.9"]);
  expect(made.history.points).toEqual([at(1, 9)]);
});

test("[L7] a retry sends the point, and HISTORY_LOST is an unknown outcome", async () => {
  const lost = problem(503, "UNAVAILABLE", { reason: "HISTORY_LOST" }, { [HISTORY_HEADER]: "9.9" });
  const { client: made, sent } = fakeClient([unavailable, lost], { retries: 1 });
  made.history.add([at(1, 5)]);
  expect(await made.leases.answers.commit(UUID, {})).toMatchObject({ kind: "unknown", outcomeKnown: false });
  expect(sent.map(({ headers }) => headers[HISTORY_HEADER])).toEqual(["1.5", "1.5"]);
  expect(made.history.points).toEqual([at(1, 5)]);
});

test("calls about records send no point", async () => {
  const { client: made, sent } = fakeClient([{ status: 200, json: { results: [] } }]);
  made.history.add([at(1, 5)]);
  await made.records.lookup([{ type: "ROUTES", value: "a" }]).catch(() => {});
  expect(sent[0]?.headers).not.toHaveProperty(HISTORY_HEADER);
});

test("a header of another form is ignored", () => {
  const history = new LedgerHistory();
  for (const header of [null, "", "1", "a.b", "0.1", "1.2.3", "-1.2"]) history.answered(undefined, header);
  expect(history.points).toEqual([]);
});

test("positions of one incarnation only grow", () => {
  const history = new LedgerHistory();
  history.answered(undefined, "1.5");
  history.answered(undefined, "1.3");
  history.add([at(1, 4)]);
  expect(history.points).toEqual([at(1, 5)]);
});

test("[L7] a point is replaced only when the ledger answers a call that sent it", () => {
  const history = new LedgerHistory();
  history.answered(undefined, "1.5");
  const early = history.next();
  history.answered(early, "1.6");
  // The ledger has confirmed only 1.5, so 1.6 may be lost.
  history.answered(early, "2.7");
  expect(history.points).toEqual([at(1, 6), at(2, 7)]);
  expect(history.replaced).toEqual([]);
  history.answered(at(1, 6), "2.8");
  expect(history.points).toEqual([at(2, 8)]);
  expect(history.replaced).toEqual([at(1, 6)]);
  // The stored row is not deleted yet. It does not come back.
  history.add([at(1, 6)]);
  expect(history.points).toEqual([at(2, 8)]);
  history.deleted([at(1, 6)]);
  expect(history.replaced).toEqual([]);
});

test("[L7] several points take turns, so that none of them is never sent", () => {
  const history = new LedgerHistory();
  history.add([at(5, 130), at(4, 10)]);
  expect(new Set([history.next(), history.next()].map((point) => point?.incarnation))).toEqual(
    new Set([4, 5]),
  );
});

test("a client remembers at most 8 points", () => {
  const history = new LedgerHistory();
  for (let incarnation = 1; incarnation <= 20; incarnation += 1) history.add([at(incarnation, 1)]);
  expect(history.points.map(({ incarnation }) => incarnation)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
});

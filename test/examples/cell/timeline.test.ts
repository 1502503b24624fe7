import { expect, test } from "vitest";
import type { EventDetails, ProtocolEvent } from "../../../examples/cell/protocol/events.ts";
import { isLeaseTimeline, timelineOf } from "../../../examples/cell/protocol/timeline.ts";

const uuid = "00000000-0000-4000-8000-000000000001";
const names = [{ change: "create" as const, type: "HANDLES" as const, value: "ada" }];
const at = (details: EventDetails[]): ProtocolEvent[] => details.map((each, atMs) => ({ ...each, atMs }));
const begin = (more: object = {}): EventDetails => ({
  kind: "begin",
  uuid,
  what: "Sign-up",
  names,
  outcome: "ok",
  refusals: [],
  durationMs: 5,
  ...more,
});

function onlyLease(details: EventDetails[]) {
  const leases = timelineOf(at(details)).filter(isLeaseTimeline);
  expect(leases).toHaveLength(1);
  return leases[0];
}

test("a lease is committed by its own process", () => {
  const lease = onlyLease([
    begin(),
    { kind: "saved", uuid },
    { kind: "commit", uuid, outcome: "ok", isReconciliation: false, durationMs: 3 },
  ]);
  expect(lease).toMatchObject({ what: "Sign-up", names, state: "committed", isRecovered: false });
  expect(lease?.steps.map(({ call }) => call)).toEqual(["begin", "COMMIT", "commit"]);
});

test("a lease whose process died is open until reconciliation recovers it", () => {
  const died: EventDetails[] = [begin(), { kind: "killed", uuid, at: "before_commit" }, { kind: "started" }];
  expect(onlyLease(died)).toMatchObject({ state: "open", isRecovered: false });
  const recovered = onlyLease([
    ...died,
    { kind: "fence", uuid, found: "fenced" },
    { kind: "rollback", uuid, outcome: "ok", isReconciliation: true, durationMs: 3 },
  ]);
  expect(recovered).toMatchObject({ state: "rolled back", isRecovered: true });
});

test("a refusal lists each name that is refused", () => {
  const refusals = [
    { type: "HANDLES", value: "ada", kind: "taken" },
    { type: "EMAILS", value: "ada@example.com", kind: "leased" },
  ];
  const lease = onlyLease([begin({ outcome: "refused", refusals }), { kind: "undone", uuid }]);
  expect(lease).toMatchObject({ state: "refused" });
  expect(lease?.steps[0]?.text).toBe("refused: ada is taken, ada@example.com is leased");
});

test("entries are sorted from the newest to the oldest", () => {
  const entries = timelineOf(at([{ kind: "started" }, begin(), { kind: "notice", text: "something" }]));
  expect(entries.map((each) => (isLeaseTimeline(each) ? each.what : each.text))).toEqual([
    "Something",
    "Sign-up",
    "The process of this cell started",
  ]);
});

import { expect, test } from "vitest";
import type { Happening, ProtocolEvent } from "../../../examples/cell/protocol/events.ts";
import { isStory, storiesOf } from "../../../examples/cell/protocol/stories.ts";

const uuid = "00000000-0000-4000-8000-000000000001";
const names = [{ change: "claim" as const, type: "USERNAMES" as const, value: "ada" }];
const at = (happenings: Happening[]): ProtocolEvent[] =>
  happenings.map((happening, atMs) => ({ ...happening, atMs }));
const begin = (more: object = {}): Happening => ({
  kind: "begin",
  uuid,
  what: "Sign-up",
  names,
  outcome: "ok",
  refusals: [],
  durationMs: 5,
  ...more,
});

function onlyStory(happenings: Happening[]) {
  const stories = storiesOf(at(happenings)).filter(isStory);
  expect(stories).toHaveLength(1);
  return stories[0];
}

test("a lease that was committed by its own process", () => {
  const story = onlyStory([
    begin(),
    { kind: "saved", uuid },
    { kind: "commit", uuid, outcome: "ok", isReconciliation: false, durationMs: 3 },
  ]);
  expect(story).toMatchObject({ what: "Sign-up", names, state: "committed", isHealed: false });
  expect(story?.steps.map(({ call }) => call)).toEqual(["begin", "COMMIT", "commit"]);
});

test("a lease whose process died is open until reconciliation has healed it", () => {
  const died: Happening[] = [begin(), { kind: "killed", uuid, at: "before_commit" }, { kind: "started" }];
  expect(onlyStory(died)).toMatchObject({ state: "open", isHealed: false });
  const healed = onlyStory([
    ...died,
    { kind: "fence", uuid, found: "fenced" },
    { kind: "rollback", uuid, outcome: "ok", isReconciliation: true, durationMs: 3 },
  ]);
  expect(healed).toMatchObject({ state: "rolled back", isHealed: true });
});

test("a refusal tells each name once", () => {
  const refusals = [
    { type: "USERNAMES", value: "ada", kind: "taken" },
    { type: "ROUTES", value: "ada", kind: "taken" },
  ];
  const story = onlyStory([begin({ outcome: "refused", refusals }), { kind: "undone", uuid }]);
  expect(story).toMatchObject({ state: "refused" });
  expect(story?.steps[0]?.text).toBe("refused: ada is taken");
});

test("the newest is the first", () => {
  const told = storiesOf(at([{ kind: "started" }, begin(), { kind: "notice", text: "something" }]));
  expect(told.map((each) => (isStory(each) ? each.what : each.text))).toEqual([
    "Something",
    "Sign-up",
    "The process of this cell started",
  ]);
});

import { describe, expect, test } from "vitest";
import { complaintsAboutAge, complaintsAboutOrder, Owners, type Told } from "./churn-judge.ts";

/** The name is created at cell 1 between 1,000 and 1,010 ms, and moves to cell 2 later. */
function ownersOf(): Owners {
  const owners = new Owners();
  const change = (cell: string | undefined, epoch: number | undefined, fromMs: number): void =>
    owners.changed("ada", { cell, epoch, began: { fromMs, toMs: fromMs + 10 } });
  change("1", 7, 1_000);
  change(undefined, undefined, 5_000);
  change("2", 9, 5_020);
  return owners;
}

const found = (
  cell: string,
  epoch: number,
  sentMs: number,
  receivedMs = sentMs + 10,
  ageMs = 60_000,
): Told => ({
  name: "ada",
  sentMs,
  receivedMs,
  cell,
  epoch,
  ageMs,
  isStale: false,
});

const free = (sentMs: number, receivedMs = sentMs + 10): Told => ({
  name: "ada",
  sentMs,
  receivedMs,
  cell: undefined,
  epoch: undefined,
  ageMs: undefined,
  isStale: false,
});

const bounds = { foundMs: 2_000, noneMs: 1_000 };

describe("how old an answer may be", () => {
  test.each<[string, Told]>([
    ["is true", found("1", 7, 3_000)],
    ["may have become true before it arrived", found("1", 7, 990, 1_000)],
    ["was true as long ago as the bound", found("1", 7, 7_010)],
    ["was free as long ago as the bound", free(2_010)],
    ["was free for a moment", free(5_015)],
    ["is as old as it says", found("1", 7, 5_500, 5_600, 490)],
    ["is from an outage", { ...found("1", 7, 30_000), isStale: true }],
  ])("an answer that %s is accepted", (_, told) => {
    expect(complaintsAboutAge([told], ownersOf(), bounds)).toEqual([]);
  });

  test.each<[string, Told, RegExp]>([
    ["was true too long ago", found("1", 7, 7_020), /not true for 2010 ms/],
    ["was free too long ago", free(2_020), /not true for 1010 ms/],
    ["is not true yet", found("2", 9, 3_000), /never true before/],
    ["has another epoch", found("2", 8, 6_000), /never true before/],
    ["has the epoch of another cell", found("2", 7, 6_000), /never true before/],
    [
      "is from an outage, and older than it says",
      { ...found("1", 7, 30_000, 30_010, 9), isStale: true },
      /ms old/,
    ],
    ["says that it is younger", found("1", 7, 5_500, 5_600, 400), /not true for 490 ms, and may be 402/],
  ])("an answer that %s is found", (_, told, complaint) => {
    expect(complaintsAboutAge([told], ownersOf(), bounds)).toEqual([expect.stringMatching(complaint)]);
  });

  test("an epoch that is not known is not compared", () => {
    const owners = new Owners();
    owners.changed("ada", { cell: "1", epoch: undefined, began: { fromMs: 0, toMs: 10 } });
    expect(complaintsAboutAge([found("1", 8, 20)], owners, bounds)).toEqual([]);
  });
});

describe("[Q6] the order of answers", () => {
  test.each<[string, Told[]]>([
    ["grows", [found("1", 7, 0), free(20), found("2", 9, 40)]],
    ["is not known for answers that overlap", [found("2", 9, 0, 30), found("1", 7, 20)]],
    [
      "may show an owner after a free name that overlaps",
      [found("1", 7, 0, 30), free(20, 40), found("1", 7, 50)],
    ],
  ])("%s", (_, told) => {
    expect(complaintsAboutOrder(told)).toEqual([]);
  });

  test.each<[string, Told[]]>([
    ["an older epoch after a newer one", [found("2", 9, 0), found("1", 7, 20)]],
    ["an owner again after it was gone", [found("1", 7, 0), free(20), found("1", 7, 40)]],
  ])("finds %s", (_, told) => {
    expect(complaintsAboutOrder(told)).toHaveLength(1);
    expect(complaintsAboutOrder(told.toReversed())).toHaveLength(1);
  });
});

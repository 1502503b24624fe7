/** Tests the whole matrix: it covers every write, and the documentation lists its scenarios. */
import { expect, test } from "vitest";
import * as kinds from "../../../src/coordinator/capabilities/index.ts";
import { documented } from "./documented.ts";
import { d1Errors } from "./faulty-d1.ts";
import { rowsOf } from "./matrix.ts";
import { callFaults, writeFaults } from "./armed-fault.ts";
import { prepareDatabases, record } from "./play.ts";
import { scenarios } from "./scenarios.ts";

/** Write points that no scenario can reach, and the reason. */
const unreachable: Record<string, string> = {
  raise_format: "all code speaks one format so far; the unit tests and the simulation write it",
  record_lost_history: "a part must go back in time first, as in the simulation",
  rebuild_leases: "a part must go back in time first, as in the simulation",
  accept_loss: "a part must go back in time first, as in the simulation",
  finish_reconciliation: "a part must go back in time first, as in the simulation",
  drop_past_claims: "claims must be months old first; the unit tests and the simulation write it",
  change_transfer: "no scenario has a transfer; the simulation and test/rigs/transfers write it",
  move_claims: "no scenario has a transfer; the simulation and test/rigs/transfers write it",
  restore_directory: "the directory must go back in time first",
  start_growth: "the unit tests and the simulation write it",
  order_cut: "the unit tests and the simulation write it",
  confirm_cut: "the unit tests and the simulation write it",
  abort_growth: "the unit tests and the simulation write it",
  finish_growth: "the unit tests and the simulation write it",
  copy: "the unit tests and the simulation write it",
  receive: "the unit tests and the simulation write it",
  fence: "the unit tests and the simulation write it",
  clean: "the unit tests and the simulation write it",
};

await prepareDatabases();
const matrix: { title: string; points: string[]; faults: string[] }[] = [];
for (const scenario of scenarios) {
  const journal = await record(scenario);
  matrix.push({
    title: scenario.title,
    points: journal.writes.flatMap(({ points }) => points),
    faults: rowsOf(scenario, journal).map(({ fault }) => fault),
  });
}

test("every write point of the code occurs in a scenario", () => {
  const seen = new Set([...matrix.flatMap(({ points }) => points), ...Object.keys(unreachable)]);
  expect(
    [kinds.ledger, kinds.shard, kinds.directory]
      .flatMap(({ writes }) => writes)
      .filter((point) => !seen.has(point)),
  ).toEqual([]);
});

test("every fault and every error of D1 occurs in a row", () => {
  const faults = new Set(matrix.flatMap((scenario) => scenario.faults));
  const errors = d1Errors.flatMap((text) => [`fails: ${text}`, `fails afterwards: ${text}`]);
  expect(
    [...Object.keys(callFaults), ...Object.keys(writeFaults), ...errors].filter(
      (fault) => !faults.has(fault),
    ),
  ).toEqual([]);
});

// Each scenario's own test compares the writes.
test("the documentation lists every scenario, and no other", () => {
  expect([...documented.keys()].toSorted()).toEqual(matrix.map(({ title }) => title).toSorted());
});

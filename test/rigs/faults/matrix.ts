/** The rows of the matrix, made from what the scenarios did when nothing went wrong. */
import { d1Errors } from "./faulty-d1.ts";
import {
  armFault,
  keyOf,
  type ArmedFault,
  type CallFault,
  type CallRecord,
  type Journal,
  type Spot,
  type WriteFault,
  type WriteRecord,
} from "./armed-fault.ts";
import type { Scenario } from "./scenarios.ts";

export interface Row {
  scenario: Scenario;
  fault: string;
  /** What it goes wrong at, for its title. */
  at: string;
  /** The durable writes that it is about, in order. */
  writes: string[];
  /** Whether two durable writes fail, one after the other. */
  isPair: boolean;
  /** Made anew for each run. */
  arm: () => ArmedFault[];
}

/** What has to happen to every write, and to every two that follow each other. */
const required = {
  write: ["crash_before", "crash_after", "lose_answer", "twice", "late"],
  pair: ["cut", "lose_answer", "twice", "late"],
} as const;

const ofCalls: readonly CallFault[] = ["drop", "lose_answer", "twice", "late", "stale", "reset_after"];
const ofPairs: readonly CallFault[] = ["lose_answer", "twice", "late"];
/** To the caller they are all the same: one of them for each call, in turn. */
const refusals: readonly CallFault[] = ["overloaded", "retryable", "reset"];

export function rowsOf(scenario: Scenario, journal: Journal): Row[] {
  const { calls, writes } = journal;
  const writesOf = (call: CallRecord): string[] => writes.filter((write) => write.call === call).map(keyOf);
  const ofD1 = calls.filter(({ to }) => to === "d1");
  const pairs = writes.slice(1).flatMap((second, index) => {
    const first = writes[index];
    return first === undefined ? [] : [{ first, second }];
  });
  return [
    ...calls.flatMap((call, index) => callRows(scenario, call, index, ofD1.indexOf(call), writesOf(call))),
    ...writes.flatMap((write) => writeRows(scenario, write)),
    ...pairs.flatMap(({ first, second }) => pairRows(scenario, calls, first, second)),
  ];
}

function callRows(
  scenario: Scenario,
  call: CallRecord,
  index: number,
  nthOfD1: number,
  writes: string[],
): Row[] {
  const isD1 = call.to === "d1";
  const kinds = isD1
    ? (["drop", "lose_answer", "twice", "late"] as const)
    : [...ofCalls, refusals[index % refusals.length] ?? "reset"];
  const rows = kinds.map((kind): Row => ({
    scenario,
    fault: kind,
    at: keyOf(call),
    writes,
    isPair: false,
    arm: () => [armFault(call, { kind })],
  }));
  return isD1 ? [...rows, ...d1Rows(scenario, call, nthOfD1, writes)] : rows;
}

/** Every error that D1 is known for, before the work was done and afterwards. */
const errors = d1Errors.flatMap((text) => [
  { text, carriedOut: false },
  { text, carriedOut: true },
]);
/** Of these, so many for each statement, in turn. */
const ERRORS_EACH = 4;

/** Twice in a row, so that the second try fails as well. */
function d1Rows(scenario: Scenario, call: CallRecord, nthOfD1: number, writes: string[]): Row[] {
  const from = nthOfD1 * ERRORS_EACH;
  return [...errors, ...errors]
    .slice(from % errors.length, (from % errors.length) + ERRORS_EACH)
    .map(({ text, carriedOut }) => {
      const armed = (): ArmedFault[] => {
        const first = armFault(call, { kind: "error", text, carriedOut });
        return [
          first,
          armFault({ label: call.label }, { kind: "error", text, carriedOut }, { after: first }),
        ];
      };
      return {
        scenario,
        fault: `${carriedOut ? "fails afterwards" : "fails"}: ${text}`,
        at: keyOf(call),
        writes,
        isPair: false,
        arm: armed,
      };
    });
}

function writeRows(scenario: Scenario, write: WriteRecord): Row[] {
  // D1 cannot be made to crash; what it does then are its errors.
  if (write.call?.to === "d1") return [];
  const kinds: readonly WriteFault[] = ["crash_before", "crash_after"];
  return kinds.map((kind) => ({
    scenario,
    fault: kind,
    at: keyOf(write),
    writes: [keyOf(write)],
    isPair: false,
    arm: () => [armFault(write, { kind })],
  }));
}

function pairRows(scenario: Scenario, calls: CallRecord[], first: WriteRecord, second: WriteRecord): Row[] {
  const writes = [keyOf(first), keyOf(second)];
  const at = writes.join(" → ");
  const cut: Row = {
    scenario,
    fault: "cut",
    at,
    writes,
    isPair: true,
    arm: () => [armFault(first, { kind: "cut" })],
  };
  const [one, other] = [first.call, second.call];
  // Both in one call: what happens to it happens to both.
  if (one === undefined || other === undefined || one === other) return [cut];
  const isOuter = calls.indexOf(other) < calls.indexOf(one);
  const both = ofPairs.map((kind): Row => {
    const goesOn = scenario.goesOn === true || (isOuter && kind === "twice");
    const armed = (): ArmedFault[] => {
      const earlier = armFault(one, { kind }, { write: written(first, one, kind) });
      // Both shards are asked at once: when the answer of one is lost, the other has made its own first use by then.
      const isMadeBefore = kind === "lose_answer" && isFirstUse(second) && one.to !== other.to;
      const write = isMadeBefore ? undefined : written(second, other, kind);
      return [
        earlier,
        goesOn
          ? armFault(other, { kind }, { write })
          : armFault(nextOf(first, second, other, kind), { kind }, { write, after: earlier }),
      ];
    };
    return { scenario, fault: kind, at, writes, isPair: true, arm: armed };
  });
  return [cut, ...both];
}

/** Where something was lost, its sender begins anew: the second fault waits for the call that comes with that. */
function nextOf({ label }: WriteRecord, second: WriteRecord, call: CallRecord, kind: CallFault): Spot {
  // The repeated call is told that the cell exists: the ledger is first used by what comes then.
  if (label === "directory.add_cell" && second.label === "ledger1.keep_name" && kind !== "twice")
    return { to: call.to };
  return { label: call.label };
}

/** What the call must have written that the fault happens to; undefined: somebody else is there before it. */
function written(write: WriteRecord, call: CallRecord, kind: CallFault): string | undefined {
  const { label } = write;
  if (kind !== "late") return label;
  // The platform gives an alarm again at once.
  if (call.label.startsWith("platform > ")) return undefined;
  // The repeated begin comes earlier than the message that is late.
  return isFirstUse(write) ? undefined : label;
}

const isFirstUse = ({ label }: WriteRecord): boolean =>
  /^shard\d\.(keep_name|migrate|confirm_placement)$/.test(label);

/** Writes, and pairs of them, for which a fault that is required has no row. */
export function missingRows({ writes }: Journal, rows: readonly Row[]): string[] {
  const has = (fault: string, pair: string[]): boolean =>
    rows.some((row) => row.fault.startsWith(fault) && pair.every((write) => row.writes.includes(write)));
  const single = writes.flatMap((write) => {
    const isD1 = write.call?.to === "d1";
    const faults = isD1 ? ["fails:", "fails afterwards:", "lose_answer", "twice", "late"] : required.write;
    return faults.filter((fault) => !has(fault, [keyOf(write)])).map((fault) => `${keyOf(write)}: ${fault}`);
  });
  const pairs = writes.slice(1).flatMap((second, index) => {
    const first = writes[index];
    if (first === undefined) return [];
    const pair = [keyOf(first), keyOf(second)];
    return required.pair.filter((fault) => !has(fault, pair)).map((fault) => `${pair.join(" → ")}: ${fault}`);
  });
  return [...single, ...pairs];
}

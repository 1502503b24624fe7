/** The rows of the matrix, made from the journals of scenarios without faults. */
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
  /** Where the fault happens, for the title. */
  at: string;
  /** The durable writes that the row covers, in order. */
  writes: string[];
  /** The row runs in one of so many slices. */
  parts: number;
  /** Creates the faults for one run. */
  arm: () => ArmedFault[];
}

/** The required faults of every write, and of every two consecutive writes. */
const required = {
  write: ["crash_before", "crash_after", "lose_answer", "twice", "late"],
  pair: ["cut", "lose_answer", "twice", "late"],
} as const;

const ofCalls: readonly CallFault[] = ["drop", "lose_answer", "twice", "late", "stale", "reset_after"];
const ofPairs: readonly CallFault[] = ["lose_answer", "twice", "late"];
/** Rows take turns, so that a run takes minutes. */
const PARTS_OF_CRASHES = 3;
const PARTS_OF_CALLS = 9;
const PARTS_OF_PAIRS = 21;
/** The caller cannot distinguish these, so each call gets one of them, in turn. */
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
    parts: PARTS_OF_CALLS,
    arm: () => [armFault(call, { kind })],
  }));
  return isD1 ? [...rows, ...d1Rows(scenario, call, nthOfD1, writes)] : rows;
}

/** Every error text of D1, before and after the work was done. */
const errors = d1Errors.flatMap((text) => [
  { text, carriedOut: false },
  { text, carriedOut: true },
]);
/** The number of errors for each statement, in turn. */
const ERRORS_EACH = 4;

/** Twice in a row, so that the retry fails as well. */
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
        parts: PARTS_OF_CALLS,
        arm: armed,
      };
    });
}

function writeRows(scenario: Scenario, write: WriteRecord): Row[] {
  // D1 cannot be made to crash, so its errors are tested instead.
  if (write.call?.to === "d1") return [];
  const kinds: readonly WriteFault[] = ["crash_before", "crash_after"];
  return kinds.map((kind) => ({
    scenario,
    fault: kind,
    at: keyOf(write),
    writes: [keyOf(write)],
    parts: PARTS_OF_CRASHES,
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
    parts: PARTS_OF_PAIRS,
    arm: () => [armFault(first, { kind: "cut" })],
  };
  const [one, other] = [first.call, second.call];
  // One call makes both writes, so a fault of the call affects both.
  if (one === undefined || other === undefined || one === other) return [cut];
  const isOuter = calls.indexOf(other) < calls.indexOf(one);
  const both = ofPairs.map((kind): Row => {
    const goesOn = scenario.goesOn === true || (isOuter && kind === "twice");
    const armed = (): ArmedFault[] => {
      const earlier = armFault(one, { kind }, { write: written(first, one, kind) });
      // Both shards are asked at once. When the answer of one is lost, the other one has already done its
      // first use.
      const isMadeByOther = kind === "lose_answer" && isFirstUse(second) && one.to !== other.to;
      // The calls are steps of the same work, so the copy of the first one does what the second one would do.
      const isMadeByCopy = kind === "twice" && first.label === second.label && one.label === other.label;
      const write = isMadeByOther || isMadeByCopy ? undefined : written(second, other, kind);
      return [
        earlier,
        goesOn
          ? armFault(other, { kind }, { write })
          : armFault(nextOf(first, second, other, kind), { kind }, { write, after: earlier }),
      ];
    };
    return { scenario, fault: kind, at, writes, parts: PARTS_OF_PAIRS, arm: armed };
  });
  return [cut, ...both];
}

/** After a lost message the sender starts again, so the second fault waits for the repeated call. */
function nextOf({ label }: WriteRecord, second: WriteRecord, call: CallRecord, kind: CallFault): Spot {
  // The repeated call finds that the cell exists, so the ledger is first used by the call after it.
  if (label === "directory.add_cell" && second.label === "ledger1.keep_name" && kind !== "twice")
    return { to: call.to };
  return { label: call.label };
}

/** The write that the faulty call must make. Undefined if another call has already made it. */
function written(write: WriteRecord, call: CallRecord, kind: CallFault): string | undefined {
  const { label } = write;
  if (kind !== "late") return label;
  // The platform repeats an alarm at once.
  if (call.label.startsWith("platform > ")) return undefined;
  // The repeated begin arrives before the late message.
  return isFirstUse(write) ? undefined : label;
}

const isFirstUse = ({ label }: WriteRecord): boolean =>
  /^shard\d\.(keep_name|migrate|confirm_placement)$/.test(label);

/** Writes and pairs of writes for which a required fault has no row. */
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

/** What may go wrong, where, and the record of what was done. */
import type { WritePoint } from "../../../src/core/write-points.ts";

/** What can happen to a call. */
export const callFaults = {
  drop: "never carried out, never answered",
  lose_answer: "carried out, never answered",
  twice: "carried out, again once it is done, and again after everything else",
  late: "carried out after its sender has given up",
  stale: "carried out after everything else, retries and recovery included",
  overloaded: "not carried out: an error with `overloaded`",
  retryable: "not carried out: an error with `retryable`",
  reset: "not carried out: an error with `durableObjectReset`",
  reset_after: "carried out: an error with `durableObjectReset`",
} as const;

/** What can happen to an object at one of its writes. */
export const writeFaults = {
  crash_before: "the object dies in the turn before the write",
  crash_after: "the object dies once the write is durable, and answers nobody",
  cut: "all objects die once the write is durable, so that the next one finds nobody who remembers",
} as const;

export type CallFault = keyof typeof callFaults;
export type WriteFault = keyof typeof writeFaults;

/** `error`: D1 fails with this text, before it carries anything out or afterwards. */
export type Fault =
  | { kind: CallFault }
  | { kind: WriteFault }
  | { kind: "error"; text: string; carriedOut: boolean };

/** A call or a write: the nth of its label, the next one of its label, or the next call to an object. */
export type Spot = { label: string; nth?: number } | { to: string };

export const keyOf = ({ label, nth }: { label: string; nth: number }): string => `${label} #${nth}`;

export function isAt(spot: Spot, label: string, nth: number): boolean {
  if ("label" in spot) return spot.label === label && (spot.nth ?? nth) === nth;
  return label.includes(` > ${spot.to} `);
}

/** One fault at one spot. It happens once, and not before the one that it comes after. */
export interface ArmedFault {
  at: Spot;
  fault: Fault;
  after: ArmedFault | undefined;
  /** The label of a write that the call makes which it happens to. */
  write: string | undefined;
  fired: boolean;
  /** What it happened to. */
  call: CallRecord | undefined;
}

export function armFault(
  at: Spot,
  fault: Fault,
  { after, write }: Partial<Pick<ArmedFault, "after" | "write">> = {},
): ArmedFault {
  return { at, fault, after, write, fired: false, call: undefined };
}

/** A call that was made: who asked whom for what. */
export interface CallRecord {
  label: string;
  nth: number;
  to: string;
  /** It is being carried out. */
  open: boolean;
}

/** A durable write that was made, and the call that was being carried out. */
export interface WriteRecord {
  label: string;
  nth: number;
  points: readonly WritePoint[];
  call: CallRecord | undefined;
}

/** What was done, in order, since the beginning of the scenario. */
export class Journal {
  readonly calls: CallRecord[] = [];
  readonly writes: WriteRecord[] = [];
  readonly #counts = new Map<string, number>();

  /** Calls and writes, for whoever has to find out. */
  describe(): string {
    const lines = this.calls.map((call) => [
      `${keyOf(call)}${call.open ? " (open)" : ""}`,
      ...this.writes.filter((write) => write.call === call).map((write) => `  ${keyOf(write)}`),
    ]);
    return lines.flat().join("\n");
  }

  /** The how manieth of its label this is. */
  count(label: string): number {
    const nth = (this.#counts.get(label) ?? 0) + 1;
    this.#counts.set(label, nth);
    return nth;
  }

  call(label: string, to: string): CallRecord {
    const record: CallRecord = { label, nth: this.count(label), to, open: false };
    this.calls.push(record);
    return record;
  }

  /** Of what is being carried out by the object, the latest call is the one that writes. */
  caller(object: string): CallRecord | undefined {
    return this.calls.findLast(({ to, open }) => open && to === object);
  }
}

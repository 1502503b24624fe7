/** The faults, where they happen, and the journal of calls and writes. */
import type { WritePoint } from "../../../src/coordinator/kernel/write-points.ts";

/** The faults of a call. */
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

/** The faults of a write. */
export const writeFaults = {
  crash_before: "the object dies in the turn before the write",
  crash_after: "the object dies once the write is durable, and gives no answer",
  cut: "all objects die once the write is durable, so that no object remembers it",
} as const;

export type CallFault = keyof typeof callFaults;
export type WriteFault = keyof typeof writeFaults;

/** `error`: D1 fails with this text, before or after the statement is carried out. */
export type Fault =
  | { kind: CallFault }
  | { kind: WriteFault }
  | { kind: "error"; text: string; carriedOut: boolean };

/**
 * Where a fault happens: at the nth call or write with a label, at the next one with a label, or at the next
 * call to an object.
 */
export type Spot = { label: string; nth?: number } | { to: string };

export const keyOf = ({ label, nth }: { label: string; nth: number }): string => `${label} #${nth}`;

export function isAt(spot: Spot, label: string, nth: number): boolean {
  if ("label" in spot) return spot.label === label && (spot.nth ?? nth) === nth;
  return label.includes(` > ${spot.to} `);
}

/** A fault at one spot. It happens once, and only after the fault in `after`. */
export interface ArmedFault {
  at: Spot;
  fault: Fault;
  after: ArmedFault | undefined;
  /** The label of the write that the faulty call must make. */
  write: string | undefined;
  fired: boolean;
  /** The call that it happened to. */
  call: CallRecord | undefined;
}

export function armFault(
  at: Spot,
  fault: Fault,
  { after, write }: Partial<Pick<ArmedFault, "after" | "write">> = {},
): ArmedFault {
  return { at, fault, after, write, fired: false, call: undefined };
}

/** A call that was made. */
export interface CallRecord {
  label: string;
  nth: number;
  to: string;
  /** Whether it is being carried out. */
  open: boolean;
}

/** A durable write, and the call that made it. */
export interface WriteRecord {
  label: string;
  nth: number;
  points: readonly WritePoint[];
  call: CallRecord | undefined;
}

/** The calls and writes since the beginning of the scenario, in order. */
export class Journal {
  readonly calls: CallRecord[] = [];
  readonly writes: WriteRecord[] = [];
  readonly #counts = new Map<string, number>();

  /** A text that lists the calls and writes, for error messages. */
  describe(): string {
    const lines = this.calls.map((call) => [
      `${keyOf(call)}${call.open ? " (open)" : ""}`,
      ...this.writes.filter((write) => write.call === call).map((write) => `  ${keyOf(write)}`),
    ]);
    return lines.flat().join("\n");
  }

  /** Counts a label. Returns the number of this occurrence. */
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

  /**
   * The open call to an object that writes: the one that is named like the write, or the latest one. While a
   * scrub reads, the scrub of another part may ask the object something.
   */
  caller(object: string, points: readonly WritePoint[]): CallRecord | undefined {
    const open = this.calls.filter((call) => call.open && call.to === object);
    const isNamed = ({ label }: CallRecord): boolean => points.some((point) => label.endsWith(` ${point}`));
    return open.findLast(isNamed) ?? open.at(-1);
  }
}

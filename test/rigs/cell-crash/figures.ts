import type { Line } from "./record.ts";

/** Counts by name. */
type Count = Record<string, number>;

export interface Figures {
  signUps: number;
  /** Reported outcomes by kind and code. */
  reported: Count;
  /** Operations that were started and killed before their outcome was reported. */
  unreported: number;
  /** Retries of calls to the coordinator. */
  retries: Count;
  events: Count;
  /** The counters of all reconciliations. */
  reconciled: Count;
}

/** Codes that the coordinator answers when it has decided about the names. */
const DECIDED: ReadonlySet<string> = new Set(["OK", "ALREADY_EXISTS", "ABORTED", "FAILED_PRECONDITION"]);

/**
 * Sign-ups that were saved or refused because of a name. One that failed because something was down does not
 * count.
 */
export const finishedSignUps = (lines: readonly Line[]): number => {
  const signUps = new Set(
    lines.flatMap((line) => (line.line === "started" && line.kind === "sign_up" ? [line.op] : [])),
  );
  return lines.filter((line) => line.line === "reported" && signUps.has(line.op) && DECIDED.has(line.code))
    .length;
};

export function figuresOf(lines: readonly Line[]): Figures {
  const kinds = new Map(
    lines.flatMap((line) => (line.line === "started" ? [[line.op, line.kind] as const] : [])),
  );
  const figures: Figures = {
    signUps: finishedSignUps(lines),
    reported: {},
    unreported: kinds.size,
    retries: {},
    events: {},
    reconciled: {},
  };
  for (const line of lines) {
    if (line.line === "reported") {
      count(figures.reported, `${kinds.get(line.op) ?? "?"} ${line.code}`);
      figures.unreported -= 1;
    } else if (line.line === "retry") count(figures.retries, line.operation);
    else if (line.line === "event") count(figures.events, line.kind);
    else if (line.line === "reconciled")
      for (const [name, value] of Object.entries(line.counters)) count(figures.reconciled, name, value);
  }
  return figures;
}

function count(counts: Count, name: string, by = 1): void {
  counts[name] = (counts[name] ?? 0) + by;
}

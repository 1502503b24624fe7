/** Groups events by lease. */
import type { AskedName, EventDetails, Outcome, ProtocolEvent } from "./events.ts";

export interface Step {
  atMs: number;
  /** The call or step, such as `begin`. */
  call: string;
  text: string;
  durationMs?: number;
  tone: Tone;
}

type Tone = "good" | "bad" | "plain";
type State = "open" | "committed" | "rolled back" | "refused" | "unknown";

export interface LeaseTimeline {
  atMs: number;
  uuid: string;
  what: string;
  names: AskedName[];
  state: State;
  /** Reconciliation decided the lease, because its own process did not. */
  isRecovered: boolean;
  steps: Step[];
}

/** An event that does not belong to a lease. */
export interface Notice {
  atMs: number;
  text: string;
}

export const isLeaseTimeline = (entry: LeaseTimeline | Notice): entry is LeaseTimeline => "uuid" in entry;

/** Returns the leases and notices, newest first. */
export function timelineOf(events: readonly ProtocolEvent[]): (LeaseTimeline | Notice)[] {
  const leases = new Map<string, LeaseTimeline>();
  const notices: Notice[] = [];
  for (const event of events) {
    if (event.kind === "started")
      notices.push({ atMs: event.atMs, text: "The process of this cell started" });
    else if (event.kind === "notice") notices.push({ atMs: event.atMs, text: capital(event.text) });
    else addEvent(leases, event);
  }
  return [...leases.values(), ...notices].toSorted((one, other) => other.atMs - one.atMs);
}

type LeaseEvent = Exclude<ProtocolEvent, { kind: "started" | "notice" }>;

function addEvent(leases: Map<string, LeaseTimeline>, event: LeaseEvent): void {
  const { uuid, atMs } = event;
  const lease = leases.get(uuid) ?? {
    atMs,
    uuid,
    what: "Lease",
    names: [],
    state: "open",
    isRecovered: false,
    steps: [],
  };
  leases.set(uuid, lease);
  lease.atMs = atMs;
  lease.steps.push({ atMs, ...stepOf(event) });
  if (event.kind === "begin") {
    Object.assign(lease, {
      what: event.what,
      names: event.names,
      state: { ok: "open", refused: "refused", unknown: "unknown" }[event.outcome],
    });
  }
  if ((event.kind === "commit" || event.kind === "rollback") && event.outcome === "ok") {
    lease.state = event.kind === "commit" ? "committed" : "rolled back";
    lease.isRecovered = event.isReconciliation;
  }
}

function stepOf(event: LeaseEvent): Omit<Step, "atMs"> {
  switch (event.kind) {
    case "begin":
      return { call: "begin", text: begun(event), durationMs: event.durationMs, tone: toneOf(event.outcome) };
    case "commit":
    case "rollback":
      return {
        call: event.kind,
        text: decided(event),
        durationMs: event.durationMs,
        tone: toneOf(event.outcome),
      };
    case "saved":
      return { call: "COMMIT", text: "the rows are saved here", tone: "good" };
    case "undone":
      return { call: "ROLLBACK", text: "nothing is saved here", tone: "plain" };
    case "fence":
      return { call: "fence", text: fences[event.found], tone: "plain" };
    case "killed":
      return {
        call: "killed",
        text:
          event.at === "before_commit" ? "the process died before COMMIT" : "the process died after COMMIT",
        tone: "bad",
      };
  }
}

const fences = {
  fenced: "the rows were not saved, and can't be saved any more",
  saved: "the rows were saved after all",
  in_flight: "a transaction is still using the lease",
};

const toneOf = (outcome: Outcome): Tone => (outcome === "ok" ? "good" : "bad");

function begun({ outcome, refusals }: Extract<EventDetails, { kind: "begin" }>): string {
  if (outcome === "ok") return "granted";
  if (outcome === "unknown") return "no answer";
  const reasons = refusals.map(({ value, kind }) => `${value} is ${kind.replace("_", " ")}`);
  return reasons.length === 0 ? "refused" : `refused: ${reasons.join(", ")}`;
}

function decided({
  kind,
  outcome,
  isReconciliation,
}: Extract<EventDetails, { kind: "commit" | "rollback" }>): string {
  if (outcome !== "ok") return outcome === "refused" ? "refused" : "no answer";
  return `${kind === "commit" ? "committed" : "rolled back"}${isReconciliation ? " by reconciliation" : ""}`;
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

import { notNull } from "../../kernel/shard/record.ts";
import { epochText, type ChangedClaimRow, type ExecutionId, type HoldRow } from "../../kernel/shard/rows.ts";
import { MAX_TEXT_LENGTH, type LoggedText } from "../../kernel/shard/shard-log.ts";
import type { Execution, TransactionNotes } from "../../kernel/shard/transaction-notes.ts";
import type { Change, ChangeEvent } from "./messages.ts";

/**
 * What happened to the lease of an execution. `seen_granted`: only that its lease is granted. `moved`: it is
 * the lease of a transfer, of which only the claims are told.
 */
type Fate = "seen_granted" | "committed" | "rolled_back" | "moved";

type LeaseEvent = Extract<ChangeEvent, "granted" | "committed" | "rolled_back">;
type ClaimEvent = Exclude<ChangeEvent, LeaseEvent>;

/** The canonical form is null if it is the value. A claim without a scope leaves out the last element. */
type StoredDetails = [
  type: number,
  value: string,
  canonical: string | null,
  subjectType: number,
  subjectId: string,
  sourceType: number,
  sourceId: string,
  scope?: string,
];

/** Instead of details that were erased, it has the number of the bucket type. */
type StoredClaim = [event: ClaimEvent, uuid: string, epoch: number, details: StoredDetails | number];

export type StoredExecution = [
  cell: string,
  lease: string,
  epoch: number,
  events: LeaseEvent[],
  claims: StoredClaim[],
  /** The source of a transfer, whose claims have moved to `cell`. */
  movedFrom?: string,
];

/** A change, and the cell that has lost the claim if it has moved. */
export type LoggedChange = Change & { movedFrom?: string };

/** The most executions that are remembered. If there are more, all are forgotten, and told once more. */
const MAX_TOLD = 10_000;

/** The most claims of one entry of a text, which is always shorter than the text of a row may be. */
const ENTRY_CLAIMS = 100;

interface Noted {
  hold: Execution;
  /** The cell that the claims have belonged to, if they were moved. */
  from?: string;
  fate: Fate;
  /** Other holds of the execution may be left, because the ledger was asked about some of them only. */
  isPart: boolean;
  claims: StoredClaim[];
}

/** Collects what the current transaction changes, for the row of the log (F1). */
export class ChangeNotes implements TransactionNotes {
  /** By `epochText`. */
  readonly #noted = new Map<string, Noted>();
  /** What this instance has written to the log of executions that still have holds, by `epochText`. */
  readonly #told = new Map<string, "granted" | "decided">();

  get isEmpty(): boolean {
    return this.#noted.size === 0;
  }

  isTold(hold: Pick<ExecutionId, "epoch" | "granted_by">): boolean {
    return this.#told.has(epochText(hold));
  }

  noteGranted(hold: HoldRow): void {
    if (!this.isTold(hold)) this.#note(hold, "seen_granted");
  }

  noteRolledBack(hold: HoldRow, isPart: boolean): void {
    this.#note(hold, "rolled_back", isPart);
  }

  noteCommitted(hold: HoldRow, claim: ChangedClaimRow | undefined, isPart: boolean): void {
    const { claims } = this.#note(hold, "committed", isPart);
    const { kind, uuid, epoch } = hold;
    if (kind === "create") claims.push(["claimed", notNull(uuid), epoch, detailsOf(hold)]);
    // The row was damaged, which a scrub reports. The shard goes on.
    else if (claim === undefined) return;
    else if (kind === "replace") claims.push(["replaced", claim.uuid, epoch, detailsOf(hold)]);
    else claims.push(["released", claim.uuid, claim.epoch, detailsOf(claim)]);
  }

  noteMoved(execution: Execution, from: string, claim: ChangedClaimRow): void {
    const noted = this.#note(execution, "moved");
    noted.from = from;
    noted.claims.push(["moved", claim.uuid, execution.epoch, detailsOf(claim)]);
  }

  readonly withoutName = withoutName;

  #note(hold: Noted["hold"], fate: Fate, isPart = true): Noted {
    const execution = epochText(hold);
    const noted = this.#noted.get(execution) ?? { hold, fate, isPart, claims: [] };
    // A sweep and the decision may share a transaction.
    if (fate !== "seen_granted") noted.fate = fate;
    noted.isPart &&= isPart;
    this.#noted.set(execution, noted);
    return noted;
  }

  take(): string[] {
    const texts: string[] = [];
    let entries: string[] = [];
    let length = 0;
    for (const entry of [...this.#noted.values()].flatMap((each) => this.#entriesOf(each))) {
      const text = JSON.stringify(entry);
      if (length + text.length > MAX_TEXT_LENGTH && entries.length > 0) {
        texts.push(`[${entries.join(",")}]`);
        entries = [];
        length = 0;
      }
      entries.push(text);
      length += text.length + 1;
    }
    if (entries.length > 0) texts.push(`[${entries.join(",")}]`);
    for (const [execution, { fate, isPart }] of this.#noted) {
      if (fate === "moved") continue;
      if (fate === "seen_granted") this.#told.set(execution, "granted");
      else if (isPart) this.#told.set(execution, "decided");
      else this.#told.delete(execution);
    }
    if (this.#told.size > MAX_TOLD) this.#forget();
    this.#noted.clear();
    return texts;
  }

  /** Forgets decisions first, because few executions have holds left after one. */
  #forget(): void {
    for (const [execution, state] of this.#told) if (state === "decided") this.#told.delete(execution);
    if (this.#told.size > MAX_TOLD) this.#told.clear();
  }

  /** Cuts an execution with many claims, because they may be longer than a row. */
  #entriesOf({ hold, from, fate, claims }: Noted): StoredExecution[] {
    const { cell, lease, epoch } = hold;
    const events: LeaseEvent[] = this.isTold(hold) || fate === "moved" ? [] : ["granted"];
    if (fate !== "moved" && fate !== "seen_granted" && this.#told.get(epochText(hold)) !== "decided")
      events.push(fate);
    const source = from === undefined ? ([] as const) : ([from] as const);
    const entries: StoredExecution[] = [
      [cell, lease, epoch, events, claims.slice(0, ENTRY_CLAIMS), ...source],
    ];
    for (let start = ENTRY_CLAIMS; start < claims.length; start += ENTRY_CLAIMS)
      entries.push([cell, lease, epoch, [], claims.slice(start, start + ENTRY_CLAIMS), ...source]);
    return entries;
  }
}

const detailsOf = (row: HoldRow | ChangedClaimRow): StoredDetails => [
  row.bucket_type,
  notNull(row.value),
  row.canonical === row.value ? null : row.canonical,
  notNull(row.subject_type),
  notNull(row.subject_id),
  notNull(row.source_type),
  notNull(row.source_id),
  ...(row.scope === null ? ([] as const) : ([row.scope] as const)),
];

/** Returns the changes of a row of the log: of each lease first its events, then its claims. */
export function* loggedChanges({ text, position, atMs }: LoggedText): Generator<LoggedChange> {
  if (text === "") return;
  for (const [cell, lease, execution, events, claims, movedFrom] of JSON.parse(text) as StoredExecution[]) {
    const common = { position, atMs, cell, lease, ...(movedFrom === undefined ? {} : { movedFrom }) };
    for (const event of events) yield { event, ...common, epoch: execution };
    for (const [event, uuid, epoch, details] of claims)
      yield { event, ...common, epoch, claim: { uuid, ...readDetails(details) } };
  }
}

function readDetails(stored: StoredDetails | number): Omit<NonNullable<Change["claim"]>, "uuid"> {
  if (typeof stored === "number") return { type: stored, details: null };
  const [type, value, canonical, subjectType, subjectId, sourceType, sourceId, scope = null] = stored;
  return {
    type,
    details: {
      canonical: canonical ?? value,
      value,
      subject: { type: subjectType, id: subjectId },
      source: { type: sourceType, id: sourceId },
      scope,
    },
  };
}

function withoutName(
  text: string,
  { type, canonical }: { type: number; canonical: string },
  currentEpoch: number | undefined,
): { text: string; erased: number } {
  let erased = 0;
  const executions = (JSON.parse(text) as StoredExecution[]).map(
    ([cell, lease, execution, events, claims, ...source]): StoredExecution => [
      cell,
      lease,
      execution,
      events,
      claims.map((claim): StoredClaim => {
        const [event, uuid, epoch, details] = claim;
        if (typeof details === "number" || details[0] !== type) return claim;
        if ((details[2] ?? details[1]) !== canonical) return claim;
        if (event !== "released" && epoch === currentEpoch) return claim;
        erased += 1;
        return [event, uuid, epoch, type];
      }),
      ...source,
    ],
  );
  return { text: JSON.stringify(executions), erased };
}

/**
 * One bucket as a sequential object: who owns it, which granted lease holds it, and the state of each lease
 * that named it. `step` defines what each answer allows. Numbers in brackets are rules of
 * docs/reference/protocol.md.
 *
 * Holds of attempts that were never granted are not in the state. They may exist anywhere until a shard
 * inquires about them [B6, B8]. A lookup never shows them. Their effect on begins (`leased`) is allowed
 * wherever `explained` says that some begin may have left one.
 */
import type { BatchOp, LeaseState, OpKind, Outcome, SeenConflict, SeenRecord } from "./history.ts";

interface Holding {
  cell: string;
  subject: string | undefined;
  source: string | undefined;
  value: string | undefined;
}

interface Claim {
  record: Holding;
  /** Known once a lookup has shown it. */
  epoch: number | undefined;
}

interface Hold {
  lease: number;
  kind: OpKind;
  record: Holding;
  epoch: number | undefined;
}

export interface State {
  readonly claim: Claim | undefined;
  /** The hold of a granted lease, until its decision. */
  readonly hold: Hold | undefined;
  /** The largest epoch that was seen. */
  readonly epoch: number;
  /** One letter per lease of this bucket: `-` nothing durable [B7], `G`ranted, `C`ommitted, `R`olled back. */
  readonly leases: string;
}

export type Action =
  /**
   * A begin that was granted, or may have been. `take`: what it holds here. `created`: whether this call was
   * the grant, if known.
   */
  | {
      kind: "begun";
      lease: number;
      take: Taking | undefined;
      state: LeaseState;
      created: boolean | undefined;
    }
  /** A begin that was refused because of a conflict on this or another bucket. */
  | {
      kind: "refused";
      lease: number;
      cell: string;
      op: BatchOp | undefined;
      conflict: SeenConflict | undefined;
      explained: boolean;
    }
  | { kind: "decided"; lease: number; outcome: Outcome }
  /** The ledger answered the state of the lease, or null for an unknown lease. */
  | { kind: "state"; lease: number; state: LeaseState | null }
  /** `lease`: the lease of `record`, or -1 if it never named this bucket. */
  | { kind: "seen"; record: SeenRecord | null; lease: number }
  /** A destroy with `allow_missing` that found no claim. */
  | { kind: "missing" };

/** `mayCreate`: a replace that is a create if nobody has the name [B12]. */
export type Taking = BatchOp & { cell: string; mayCreate?: boolean };

/** The next state, or the reason why the action is impossible. */
export type Step = State | string;

const LETTERS = { GRANTED: "G", COMMITTED: "C", ROLLED_BACK: "R" } as const;

export const initialState = (leases: number, claim?: Omit<Taking, "kind" | "bucket">): State => ({
  claim: claim === undefined ? undefined : { record: recordOf(claim), epoch: undefined },
  hold: undefined,
  epoch: 0,
  leases: "-".repeat(leases),
});

export const isState = (result: Step): result is State => typeof result !== "string";

/** Two states with equal keys are the same. */
export function stateKey({ claim, hold, epoch, leases }: State): string {
  const claimed = claim === undefined ? "" : `${keyOf(claim.record)}@${claim.epoch}`;
  const held = hold === undefined ? "" : `${hold.lease}${hold.kind}${keyOf(hold.record)}@${hold.epoch}`;
  return `${claimed}|${held}|${epoch}|${leases}`;
}

const keyOf = ({ cell, subject, source, value }: Holding): string =>
  `${cell}\0${subject}\0${source}\0${value}`;

/** The state after an answer. */
export function step(state: State, action: Action): Step {
  switch (action.kind) {
    case "begun":
      return begin(state, action);
    case "refused":
      return refuse(state, action);
    case "decided":
      return decide(state, action);
    case "state":
      return ask(state, action);
    case "seen":
      return look(state, action);
    case "missing":
      return state.claim === undefined && state.hold === undefined ? state : "there is a claim or a hold";
  }
}

const letterOf = (state: State, lease: number): string => state.leases[lease] ?? "-";
const withLetter = ({ leases }: State, lease: number, letter: string): string =>
  leases.slice(0, lease) + letter + leases.slice(lease + 1);

/** The grant [B5], or a replay, which answers the lease as it is [B2]. */
function begin(state: State, { lease, take, state: answered, created }: Action & { kind: "begun" }): Step {
  const letter = letterOf(state, lease);
  if (letter === "-") {
    if (answered !== "GRANTED") return "the lease was never granted";
    return created === false ? "no earlier begin was granted" : grant(state, lease, take);
  }
  if (created === true) return "the lease was granted or decided before";
  return letter === LETTERS[answered] ? state : "the lease is in another state";
}

/** From its hold to its grant no other lease changes the bucket, so both are one step here [B4, B5]. */
function grant(state: State, lease: number, take: Taking | undefined): Step {
  const leases = withLetter(state, lease, "G");
  if (take === undefined) return { ...state, leases };
  const { claim, hold } = state;
  if (hold !== undefined) return "another granted lease holds the bucket";
  const kind = take.mayCreate === true && claim === undefined ? "create" : take.kind;
  if (kind === "create" && claim !== undefined) return "the bucket is owned";
  if (kind !== "create" && claim === undefined) return "the bucket has no owner";
  if (kind !== "create" && claim?.record.cell !== take.cell) return "another cell owns the bucket";
  if (take.kind === "destroy" && claim !== undefined && !fits(take, claim.record))
    return "the claim has another subject or source";
  if (take.epoch !== undefined && claim?.epoch !== undefined && take.epoch !== claim.epoch)
    return "the claim has another epoch [B10]";
  return {
    ...state,
    leases,
    hold: { lease, kind, record: recordOf(take), epoch: undefined },
  };
}

function refuse(state: State, { lease, cell, op, conflict, explained }: Action & { kind: "refused" }): Step {
  // A lease with a row is answered from its row, without asking the shards [B2].
  if (letterOf(state, lease) !== "-") return "the lease is granted or decided: its begin is a replay";
  if (conflict === undefined) return state;
  const { claim, hold } = state;
  const owner = claim?.record.cell === cell ? "self" : "other";
  switch (conflict.kind) {
    case "leased":
      return explained || hold !== undefined ? state : "no begin has held the bucket";
    // A hold is checked first: if there is one, the answer is `leased`.
    case "taken":
      if (claim === undefined) return "the bucket has no owner";
      if (hold !== undefined) return "the bucket is held, which is answered with `leased`";
      return conflict.owner === undefined || conflict.owner === owner ? state : "the owner is another one";
    // Foreign ownership is checked before the hold, unless that may end it.
    case "not_owner":
      if (hold?.kind === "destroy") return "the bucket is held by a destroy, which is answered with `leased`";
      return claim !== undefined && owner === "other" ? state : "no other cell owns the bucket";
    case "absent":
      return claim === undefined && hold === undefined ? state : "there is a claim or a hold";
    case "mismatch":
      if (claim === undefined || hold !== undefined || owner === "other")
        return "the bucket is not this cell's, or it is held";
      // The claim's epoch may be unknown.
      if (op?.epoch !== undefined && op.epoch !== claim.epoch) return state;
      return op !== undefined && isWhole(op, claim.record) && fits(op, claim.record)
        ? "subject and source are those of the claim"
        : state;
  }
}

/** The first decision wins and is final [C1, C4]. A rollback of an unknown lease is remembered [C7]. */
function decide(state: State, { lease, outcome }: Action & { kind: "decided" }): Step {
  const letter = letterOf(state, lease);
  const decided = LETTERS[outcome];
  if (letter === decided) return state;
  if (letter === "-" && outcome === "COMMITTED") return "the lease was never granted";
  if (letter !== "-" && letter !== "G") return "the lease was decided otherwise";
  const leases = withLetter(state, lease, decided);
  const { hold } = state;
  if (hold?.lease !== lease) return { ...state, leases };
  // No answer shows whether the shard has applied it: whoever meets the hold asks the ledger first [B8, R2].
  if (outcome === "ROLLED_BACK") return { ...state, leases, hold: undefined };
  if (hold.kind === "destroy") return { ...state, leases, hold: undefined, claim: undefined };
  return { ...state, leases, hold: undefined, claim: { record: hold.record, epoch: hold.epoch } };
}

function ask(state: State, { lease, state: answered }: Action & { kind: "state" }): Step {
  const letter = letterOf(state, lease);
  if (answered === null) return letter === "-" ? state : "the lease is known";
  return letter === LETTERS[answered] ? state : "the lease is in another state";
}

/** A lookup [R2]. */
function look(state: State, action: Action & { kind: "seen" }): Step {
  const { record } = action;
  const { claim, hold } = state;
  if (record === null) {
    if (claim !== undefined) return "there is a claim";
    return hold === undefined ? state : "a granted lease creates the bucket, which lookups show";
  }
  if (record.status === "LEASE_CREATING") {
    if (claim !== undefined || hold?.kind !== "create") return "no granted lease creates the bucket";
    if (record.lease !== undefined && hold.lease !== action.lease) return "another lease creates the bucket";
    if (!isSame(record, hold.record)) return "the lease creates another record";
    return learn(state, hold, record, (epoch) => ({ ...state, epoch, hold: { ...hold, epoch } }));
  }
  if (claim === undefined) return "there is no claim";
  if (!isSame(record, claim.record)) return "the claim is another one";
  const wrong = wrongHold(hold, action, record.status === "LEASE_DESTROYING" ? "destroy" : "replace");
  return wrong ?? learn(state, claim, record, (epoch) => ({ ...state, epoch, claim: { ...claim, epoch } }));
}

/**
 * Why the status and lease of a shown claim do not fit the hold. `kind`: the kind that a hold must have to
 * show like this.
 */
function wrongHold(
  hold: Hold | undefined,
  { record, lease }: Action & { kind: "seen" },
  kind: OpKind,
): string | undefined {
  if (hold === undefined)
    return record?.status === "ACTIVE" && (record.lease ?? null) === null
      ? undefined
      : "no granted lease holds the claim";
  if (record?.lease === null || hold.kind !== kind)
    return "the claim is held by a granted lease, which shows";
  return record?.lease === undefined || hold.lease === lease
    ? undefined
    : "the claim is held by another lease";
}

/** The epoch of one owner does not change, and a later owner has a larger one [E1]. */
function learn(
  state: State,
  { epoch }: { epoch: number | undefined },
  record: SeenRecord,
  learned: (epoch: number) => State,
): Step {
  // Without the lease it may be unclear which of two equal owners was seen.
  if (record.epoch === undefined || record.lease === undefined || record.epoch === epoch) return state;
  if (epoch !== undefined) return "the epoch of this owner was another one";
  return record.epoch > state.epoch
    ? learned(record.epoch)
    : "an earlier owner had an epoch as large as this";
}

const recordOf = ({ cell, subject, source, value }: Omit<Taking, "kind" | "bucket">): Holding => ({
  cell,
  subject,
  source,
  value,
});

const agree = (a: string | undefined, b: string | undefined): boolean =>
  a === undefined || b === undefined || a === b;

/** Whether a claim fits what a destroy expects. */
const fits = (op: BatchOp, claim: Holding): boolean =>
  agree(op.subject, claim.subject) && agree(op.source, claim.source);

/** Whether `fits` could compare all fields that the op gives. */
const isWhole = (op: BatchOp, claim: Holding): boolean =>
  (op.subject === undefined || claim.subject !== undefined) &&
  (op.source === undefined || claim.source !== undefined);

const isSame = (seen: SeenRecord, claim: Holding): boolean =>
  seen.cell === claim.cell &&
  agree(seen.subject, claim.subject) &&
  agree(seen.source, claim.source) &&
  agree(seen.value, claim.value);

/** Describes a state, for explanations. */
export function describeState({ claim, hold, epoch, leases }: State, names: readonly string[]): string {
  const epochText = claim?.epoch === undefined ? "" : ` epoch ${claim.epoch}`;
  const owned = claim === undefined ? "none" : `${describeHolding(claim.record)}${epochText}`;
  const held =
    hold === undefined
      ? "none"
      : `granted ${hold.kind} of ${names[hold.lease]} (${describeHolding(hold.record)})`;
  const far = names.flatMap((name, lease) => (leases[lease] === "-" ? [] : [`${name}=${leases[lease]}`]));
  return [
    `claim: ${owned}`,
    `hold: ${held}`,
    `largest epoch seen: ${epoch}`,
    `leases: ${far.join(" ") || "none"}`,
  ].join("; ");
}

const describeHolding = ({ cell, subject, source, value }: Holding): string =>
  [`cell ${cell}`, subject, source, value].filter(Boolean).join(" ");

/** What `npm run model` checks: the base configurations, which must hold, and the variants with a rule switched off, which must fail. */

/** A property of lease.pml by its name there, or what the verifier finds by itself. */
export type Violation = string;
export const CYCLE: Violation = "endless cycle";

export interface ModelRun {
  name: string;
  model: "lease.pml" | "contend.pml";
  /** `rest` and `lookup` are safety runs of a mode of their own. `cycles`: nothing goes on for ever. */
  search: "states" | "cycles";
  /** Preprocessor definitions. */
  bounds: readonly string[];
  /** Runs in all, unless it takes longer: `whole` is left out by --quick, `full` needs --full. */
  size?: "whole" | "full";
}

export interface BaseRun extends ModelRun {
  /** About 80 % of the states that it has: a model that is broken reaches far fewer, and finds nothing. */
  least: number;
  description: string;
}

export interface VariantRun extends ModelRun {
  rule: string;
  /** The definition that takes the rule away. */
  off: string;
  expected: Violation;
  description: string;
}

const attempts = (lease0: number, lease1: number): string[] => [`NA0=${lease0}`, `NA1=${lease1}`];
/** Which ledgers crash and are replaced. */
const ONE_FAULTY = ["FAULTY=1", "REPLACED=1"];
const BOTH_FAULTY = ["FAULTY=3", "REPLACED=3"];
/** Doubled prepares: of attempt 1 of lease 0, or of the first attempts of both leases. */
const DOUBLED = ["DUP=1"];
const BOTH_DOUBLED = ["DUP=9"];

const lease = { model: "lease.pml", search: "states" } as const;
const ends = { model: "lease.pml", search: "cycles" } as const;
const contention = { model: "contend.pml", search: "cycles" } as const;

export const bases: readonly BaseRun[] = [
  {
    name: "safety-2+2",
    size: "whole",
    ...lease,
    bounds: [...attempts(2, 2), ...BOTH_FAULTY, "REDUCED"],
    least: 18_000_000,
    description: "2 attempts of each lease",
  },
  {
    name: "safety-doubled",
    size: "whole",
    ...lease,
    bounds: [...attempts(2, 1), ...BOTH_FAULTY, ...DOUBLED, "REDUCED"],
    least: 4_400_000,
    description: "prepares arrive twice",
  },
  {
    name: "destroy",
    size: "whole",
    ...lease,
    bounds: [...attempts(2, 1), ...BOTH_FAULTY, ...DOUBLED, "DESTROY", "REDUCED"],
    least: 2_700_000,
    description: "lease 0 destroys two claims",
  },
  {
    name: "lookup",
    size: "whole",
    ...lease,
    bounds: [...attempts(2, 1), ...ONE_FAULTY, "LOOKUP", "REDUCED"],
    least: 3_600_000,
    description: "a reader at shard 0",
  },
  {
    name: "rest-2+0",
    ...lease,
    bounds: [...attempts(2, 0), ...ONE_FAULTY, "PROGRESS", "REDUCED"],
    least: 290_000,
    description: "everything settles: 2 attempts of one lease",
  },
  {
    name: "rest-1+1",
    ...lease,
    bounds: [...attempts(1, 1), ...ONE_FAULTY, "PROGRESS", "REDUCED"],
    least: 750_000,
    description: "everything settles: two leases",
  },
  {
    name: "rest-doubled",
    ...lease,
    bounds: [...attempts(1, 0), ...ONE_FAULTY, ...DOUBLED, "PROGRESS", "REDUCED"],
    least: 150_000,
    description: "the same, prepares arrive twice",
  },
  {
    name: "ends-1+1",
    size: "whole",
    ...ends,
    bounds: [...attempts(1, 1), ...ONE_FAULTY, "PROGRESS", "REDUCED"],
    least: 1_500_000,
    description: "every behaviour comes to rest",
  },
  {
    name: "contention",
    ...contention,
    bounds: ["LEASES=2"],
    least: 1_500,
    description: "two begins that want the same buckets",
  },
  { name: "contention-3", ...contention, bounds: ["LEASES=3"], least: 41_000, description: "three of them" },
  {
    name: "safety-plain",
    size: "whole",
    ...lease,
    bounds: [...attempts(2, 1), ...BOTH_FAULTY],
    least: 3_300_000,
    description: "without the reduction of states",
  },

  {
    name: "safety-3+1",
    ...lease,
    size: "full",
    bounds: [...attempts(3, 1), ...BOTH_FAULTY, "REDUCED"],
    least: 15_000_000,
    description: "3 attempts of one lease",
  },
  {
    name: "safety-3+2",
    ...lease,
    size: "full",
    bounds: [...attempts(3, 2), ...ONE_FAULTY, "REDUCED"],
    least: 11_000_000,
    description: "and 2 of the other",
  },
  {
    name: "safety-doubled-both",
    ...lease,
    size: "full",
    bounds: [...attempts(2, 1), ...BOTH_FAULTY, ...BOTH_DOUBLED, "REDUCED"],
    least: 14_000_000,
    description: "prepares of both leases arrive twice",
  },
  {
    name: "destroy-2+2",
    ...lease,
    size: "full",
    bounds: [...attempts(2, 2), ...BOTH_FAULTY, "DESTROY", "REDUCED"],
    least: 9_800_000,
    description: "2 attempts of each lease",
  },
  {
    name: "lookup-doubled",
    ...lease,
    size: "full",
    bounds: [...attempts(1, 1), ...BOTH_FAULTY, ...DOUBLED, "LOOKUP", "REDUCED"],
    least: 10_000_000,
    description: "a reader, and prepares arrive twice",
  },
  {
    name: "rest-2+1",
    ...lease,
    size: "full",
    bounds: [...attempts(2, 1), ...ONE_FAULTY, "PROGRESS", "REDUCED"],
    least: 17_000_000,
    description: "everything settles",
  },
  {
    name: "rest-doubled-2+0",
    ...lease,
    size: "full",
    bounds: [...attempts(2, 0), ...ONE_FAULTY, ...DOUBLED, "PROGRESS", "REDUCED"],
    least: 3_000_000,
    description: "the same, prepares arrive twice",
  },
];

const two = attempts(2, 1);
const progress = [...attempts(1, 0), ...ONE_FAULTY, "PROGRESS"];
const reader = [...two, "LOOKUP"];

/** Switched off, each by itself. The rules are those of docs/reference/protocol.md. */
export const variants: readonly VariantRun[] = [
  {
    name: "no-cell",
    rule: "Words",
    ...lease,
    bounds: two,
    off: "NO_CELL",
    expected: "grant_dropped",
    description:
      "without the cell in its identity, a lease is released by another cell's lease with the same UUID",
  },
  {
    name: "no-attempt",
    rule: "B3",
    ...lease,
    bounds: two,
    off: "B3_NO_ATTEMPT",
    expected: "grant_dropped",
    description: "a late release of the first attempt drops the hold of the second, which is then granted",
  },
  {
    name: "reused-attempt",
    rule: "B3",
    ...lease,
    bounds: two,
    off: "B3_REUSED",
    expected: "grant_dropped",
    description: "an instance that counts from 1 again takes its predecessor's releases for its own",
  },
  {
    name: "no-epoch",
    rule: "B4",
    ...lease,
    bounds: [...two, ...DOUBLED],
    off: "B4_NO_EPOCH",
    expected: "wrongly_applied",
    description:
      "a prepare carried out again after the commit takes a new hold, which a late commit applies: a destroyed name returns",
  },
  {
    name: "yes-to-own",
    rule: "B4",
    ...lease,
    bounds: two,
    off: "B4_YES_TO_OWN",
    expected: "grant_dropped",
    description:
      "a yes because the lease holds already rests on the older attempt's hold, which that attempt's release drops",
  },
  {
    name: "takes-over",
    rule: "B4",
    ...lease,
    bounds: two,
    off: "B4_TAKES_OVER",
    expected: "grant_dropped",
    description: "a newer attempt takes over a hold that an older one is granted with",
  },
  {
    name: "owned-is-free",
    rule: "B4",
    ...lease,
    bounds: two,
    off: "OWNED_IS_FREE",
    expected: "two_owners",
    description: "a name that another cell owns is promised",
  },
  // In the modes of the large bases: what they leave out for speed must not hide it.
  {
    name: "owned-is-free-reduced",
    rule: "B4",
    ...lease,
    bounds: [...two, "REDUCED"],
    off: "OWNED_IS_FREE",
    expected: "two_owners",
    description: "the same, with the reduction of states",
  },
  {
    name: "owned-is-free-destroy",
    rule: "B4",
    ...lease,
    bounds: [...two, ...DOUBLED, "DESTROY", "REDUCED"],
    off: "OWNED_IS_FREE",
    expected: "two_owners",
    description: "the same, with a lease that destroys",
  },
  {
    name: "owned-is-free-lookup",
    rule: "B4",
    ...lease,
    bounds: [...two, "LOOKUP", "REDUCED"],
    off: "OWNED_IS_FREE",
    expected: "two_owners",
    description: "the same, with a reader",
  },
  {
    name: "grant-not-flushed",
    rule: "B5",
    ...lease,
    bounds: two,
    off: "B5_NOT_FLUSHED",
    expected: "broken_promise",
    description: "the grant is answered before its row is durable; a crash forgets it",
  },
  {
    name: "two-turns",
    rule: "B5",
    ...lease,
    bounds: two,
    off: "B5_TWO_TURNS",
    expected: "grant_dropped",
    description: "between leaving `running` and writing the row, an inquiry finds neither and answers gone",
  },
  {
    name: "not-halted",
    rule: "B5",
    ...lease,
    bounds: two,
    off: "B5_NOT_HALTED",
    expected: "grant_dropped",
    description:
      "an instance goes on after a write that failed but was durable, and releases a granted lease",
  },
  {
    name: "late-grant",
    rule: "B6",
    ...lease,
    bounds: two,
    off: "B6_LATE_GRANT",
    expected: "grant_dropped",
    description: "an attempt that was given up and released is granted when its last answer comes in",
  },
  {
    name: "no-deadline",
    rule: "B6",
    ...lease,
    bounds: progress,
    off: "B6_NO_DEADLINE",
    expected: "endless_begin",
    description: "an attempt whose answer was lost runs for ever, and so do its holds",
  },
  {
    name: "no-presumption",
    rule: "B7",
    ...lease,
    bounds: progress,
    off: "B7_NO_PRESUMPTION",
    expected: "orphan_hold",
    description:
      "a ledger that does not answer gone about what it does not know leaves the holds of a crashed begin for ever",
  },
  {
    name: "no-inquiry",
    rule: "B8",
    ...lease,
    bounds: progress,
    off: "B8_NO_INQUIRY",
    expected: "orphan_hold",
    description: "without inquiries, the holds of a crashed begin stay for ever",
  },
  {
    name: "rows-only",
    rule: "B7, B8",
    ...lease,
    bounds: two,
    off: "B8_ROWS_ONLY",
    expected: "grant_dropped",
    description:
      "an answer from the rows alone says gone about a begin that is running, which is then granted",
  },
  {
    name: "answer-by-lease",
    rule: "B8",
    ...lease,
    bounds: two,
    off: "B8_BY_LEASE",
    expected: "wrongly_applied",
    description: "an old attempt's hold is answered committed because the lease is",
  },
  {
    name: "gone-too-early",
    rule: "B8",
    ...lease,
    bounds: two,
    off: "B8_GONE_TOO_EARLY",
    expected: "half_applied",
    description: "gone about a committed lease that is not applied yet drops the claim to be",
  },
  {
    name: "not-silent",
    rule: "B8",
    ...lease,
    bounds: two,
    off: "B8_NOT_SILENT",
    expected: "grant_dropped",
    description: "a replaced instance says gone about an attempt of its successor, which is then granted",
  },
  {
    name: "parallel-retries",
    rule: "B9",
    ...contention,
    bounds: ["LEASES=2"],
    off: "PARALLEL",
    expected: CYCLE,
    description: "two begins that ask all shards at once refuse each other for ever",
  },
  {
    name: "second-decision",
    rule: "C1",
    ...lease,
    bounds: two,
    off: "C1_SECOND_DECISION",
    expected: "wrongly_applied",
    description: "a commit is overwritten by a rollback, and its messages are on their way",
  },
  {
    name: "decision-not-flushed",
    rule: "C2",
    ...lease,
    bounds: two,
    off: "C2_NOT_FLUSHED",
    expected: "wrongly_applied",
    description:
      "a commit leaves before its row is durable; a crash forgets it, and one shard has applied it",
  },
  {
    name: "reads-unflushed",
    rule: "C2, B8",
    ...lease,
    bounds: two,
    off: "C2_READ_UNFLUSHED",
    expected: "wrongly_applied",
    description: "the same through an inquiry that is answered from a row that is not durable",
  },
  {
    name: "rollback-by-lease",
    rule: "C2",
    ...lease,
    bounds: two,
    off: "C2_ROLLBACK_BY_LEASE",
    expected: "grant_dropped",
    description: "releases that match any attempt of the lease drop the hold of a newer one",
  },
  {
    name: "commit-by-lease",
    rule: "C2",
    ...lease,
    bounds: two,
    off: "C2_COMMIT_BY_LEASE",
    expected: "wrongly_applied",
    description: "a late commit applies the hold of another attempt",
  },
  {
    name: "commit-without-hold",
    rule: "C2",
    ...lease,
    bounds: two,
    off: "C2_WITHOUT_HOLD",
    expected: "claim_from_nothing",
    description: "a repeated commit brings back a claim that was destroyed meanwhile",
  },
  {
    name: "not-repeated",
    rule: "C3",
    ...lease,
    bounds: progress,
    off: "C3_NOT_REPEATED",
    expected: "undone_decision",
    description: "a decision whose message was lost is never applied",
  },
  {
    name: "timer",
    rule: "C5",
    ...lease,
    bounds: two,
    off: "C5_TIMER",
    expected: "grant_dropped",
    description: "a hold that expires by itself belongs to a lease that may be granted",
  },
  {
    name: "no-fence",
    rule: "C7",
    ...lease,
    bounds: two,
    off: "C7_NO_FENCE",
    expected: "granted_after_rollback",
    description: "a begin that arrives after its rollback is granted",
  },
  {
    name: "begin-goes-on",
    rule: "C7",
    ...lease,
    bounds: two,
    off: "C7_BEGIN_GOES_ON",
    expected: "granted_after_rollback",
    description: "a begin that is running when its lease is rolled back is granted all the same",
  },
  {
    name: "not-asked",
    rule: "R2",
    ...lease,
    bounds: reader,
    off: "R2_NOT_ASKED",
    expected: "untrue_lookup",
    description: "a name shows that is not granted and may never be",
  },
  {
    name: "lookup-by-lease",
    rule: "R2",
    ...lease,
    bounds: reader,
    off: "R2_BY_LEASE",
    expected: "wrongly_applied",
    description: "the answer about the lease is taken for one about the hold of an older attempt",
  },
  {
    name: "not-read-again",
    rule: "R2, M1",
    ...lease,
    bounds: reader,
    off: "R2_NOT_READ_AGAIN",
    expected: "untrue_lookup",
    description: "the bucket changed hands while the ledger was asked",
  },
  {
    name: "remembers",
    rule: "R2",
    ...lease,
    bounds: reader,
    off: "R2_REMEMBERS",
    expected: "untrue_lookup",
    description: "a remembered `granted` shows a name whose lease was rolled back",
  },
  {
    name: "unknown-is-none",
    rule: "R2, M2",
    ...lease,
    bounds: reader,
    off: "R2_UNKNOWN_IS_NONE",
    expected: "untrue_lookup",
    description: "a ledger that does not answer hides a name that is taken",
  },
  {
    name: "clears-unread",
    rule: "M1, B8",
    ...lease,
    bounds: two,
    off: "M1_NOT_READ_AGAIN",
    expected: "grant_dropped",
    description: "a verdict about one hold is carried out on the one that stands there by now",
  },
  {
    name: "unknown-is-yes",
    rule: "M2",
    ...lease,
    bounds: two,
    off: "M2_UNKNOWN_IS_YES",
    expected: "grant_dropped",
    description: "a lease is granted without an answer of one of its shards",
  },
  {
    name: "forgets-too-early",
    rule: "S1",
    ...lease,
    bounds: two,
    off: "S1_TOO_EARLY",
    expected: "broken_promise",
    description: "an outcome is forgotten before it is applied: its holds become nobody's",
  },
  {
    name: "replaced-writes",
    rule: "Platform",
    ...lease,
    bounds: two,
    off: "REPLACED_WRITES",
    expected: "grant_dropped",
    description: "two instances of one ledger that can both write grant behind each other's back",
  },
];

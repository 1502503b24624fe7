/**
 * The runs of `npm run model`: base runs, which must hold, and variants with a rule switched off, which must
 * fail.
 */

/** A property of lease.pml by name, or what the verifier finds on its own. */
export type Violation = string;
export const CYCLE: Violation = "endless cycle";

export interface ModelRun {
  name: string;
  model: "lease.pml" | "contend.pml";
  /** `states` checks safety. `cycles` checks that nothing goes on for ever. */
  search: "states" | "cycles";
  /** The preprocessor definitions of its bounds. */
  bounds: readonly string[];
  /** When it runs: always if undefined, not with --quick if `whole`, only with --full if `full`. */
  size?: "whole" | "full";
}

export interface BaseRun extends ModelRun {
  /**
   * The least number of states, about 80 % of the usual number. A broken model reaches far fewer and finds
   * nothing.
   */
  least: number;
  description: string;
}

export interface VariantRun extends ModelRun {
  rule: string;
  /** The preprocessor definition that switches the rule off. */
  off: string;
  expected: Violation;
  description: string;
}

const attempts = (lease0: number, lease1: number): string[] => [`NA0=${lease0}`, `NA1=${lease1}`];
/** Which ledgers crash and are replaced. */
const ONE_FAULTY = ["FAULTY=1", "REPLACED=1"];
const BOTH_FAULTY = ["FAULTY=3", "REPLACED=3"];
/** Duplicated prepares: of attempt 1 of lease 0, or of the first attempts of both leases. */
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
    name: "lookup-destroy",
    size: "whole",
    ...lease,
    bounds: [...attempts(2, 1), ...ONE_FAULTY, "DESTROY", "LOOKUP", "REDUCED"],
    least: 2_100_000,
    description: "a reader, and lease 0 destroys two claims",
  },
  {
    name: "rest-2+0",
    ...lease,
    bounds: [...attempts(2, 0), ...ONE_FAULTY, "PROGRESS", "REDUCED"],
    least: 290_000,
    description: "all work ends: 2 attempts of one lease",
  },
  {
    name: "rest-1+1",
    ...lease,
    bounds: [...attempts(1, 1), ...ONE_FAULTY, "PROGRESS", "REDUCED"],
    least: 750_000,
    description: "all work ends: two leases",
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
    description: "no behaviour is endless",
  },
  {
    name: "contention",
    ...contention,
    bounds: ["LEASES=2"],
    least: 1_500,
    description: "two begins compete for the same buckets",
  },
  {
    name: "contention-3",
    ...contention,
    bounds: ["LEASES=3"],
    least: 41_000,
    description: "three begins compete",
  },
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
    description: "3 attempts of one lease, 1 of the other",
  },
  {
    name: "safety-3+2",
    ...lease,
    size: "full",
    bounds: [...attempts(3, 2), ...ONE_FAULTY, "REDUCED"],
    least: 11_000_000,
    description: "3 attempts of one lease, 2 of the other",
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
    description: "all work ends",
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

/** One run for each rule that is switched off. The rules are those of docs/reference/protocol.md. */
export const variants: readonly VariantRun[] = [
  {
    name: "no-cell",
    rule: "Words",
    ...lease,
    bounds: two,
    off: "NO_CELL",
    expected: "grant_dropped",
    description: "a lease is released by another cell's lease with the same UUID",
  },
  {
    name: "no-attempt",
    rule: "B3",
    ...lease,
    bounds: two,
    off: "B3_NO_ATTEMPT",
    expected: "grant_dropped",
    description: "a late release of attempt 1 drops the hold of attempt 2, which is then granted",
  },
  {
    name: "reused-attempt",
    rule: "B3",
    ...lease,
    bounds: two,
    off: "B3_REUSED",
    expected: "grant_dropped",
    description: "releases of an earlier instance match attempts of an instance that counts from 1 again",
  },
  {
    name: "no-epoch",
    rule: "B4",
    ...lease,
    bounds: [...two, ...DOUBLED],
    off: "B4_NO_EPOCH",
    expected: "wrongly_applied",
    description: "a prepare carried out after the commit makes a hold, which a late commit applies again",
  },
  {
    name: "yes-to-own",
    rule: "B4",
    ...lease,
    bounds: two,
    off: "B4_YES_TO_OWN",
    expected: "grant_dropped",
    description: "an attempt is granted with an older attempt's hold, which that attempt's release drops",
  },
  {
    name: "takes-over",
    rule: "B4",
    ...lease,
    bounds: two,
    off: "B4_TAKES_OVER",
    expected: "grant_dropped",
    description: "a newer attempt takes over the hold of an older one that is granted",
  },
  {
    name: "owned-is-free",
    rule: "B4",
    ...lease,
    bounds: two,
    off: "OWNED_IS_FREE",
    expected: "two_owners",
    description: "a name that another cell owns is granted",
  },
  // The same bug in the modes of the large base runs, whose reductions must not hide it.
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
    description: "the grant is answered before its row is durable, and a crash loses it",
  },
  {
    name: "two-turns",
    rule: "B5",
    ...lease,
    bounds: two,
    off: "B5_TWO_TURNS",
    expected: "grant_dropped",
    description: "an inquiry between the end of `running` and the write of the row answers gone",
  },
  {
    name: "not-halted",
    rule: "B5",
    ...lease,
    bounds: two,
    off: "B5_NOT_HALTED",
    expected: "grant_dropped",
    description: "an instance continues after a failed write that was durable, and releases the grant",
  },
  {
    name: "late-grant",
    rule: "B6",
    ...lease,
    bounds: two,
    off: "B6_LATE_GRANT",
    expected: "grant_dropped",
    description: "a released attempt is granted when its last answer arrives",
  },
  {
    name: "no-deadline",
    rule: "B6",
    ...lease,
    bounds: progress,
    off: "B6_NO_DEADLINE",
    expected: "endless_begin",
    description: "an attempt whose answer was lost never ends, and neither do its holds",
  },
  {
    name: "no-presumption",
    rule: "B7",
    ...lease,
    bounds: progress,
    off: "B7_NO_PRESUMPTION",
    expected: "orphan_hold",
    description: "the holds of a crashed begin stay for ever, because the ledger does not answer gone",
  },
  {
    name: "no-inquiry",
    rule: "B8",
    ...lease,
    bounds: progress,
    off: "B8_NO_INQUIRY",
    expected: "orphan_hold",
    description: "the holds of a crashed begin stay for ever",
  },
  {
    name: "rows-only",
    rule: "B7, B8",
    ...lease,
    bounds: two,
    off: "B8_ROWS_ONLY",
    expected: "grant_dropped",
    description: "a running begin is called gone and then granted",
  },
  {
    name: "answer-by-lease",
    rule: "B8",
    ...lease,
    bounds: two,
    off: "B8_BY_LEASE",
    expected: "wrongly_applied",
    description: "the hold of an old attempt is called committed, because the lease is committed",
  },
  {
    name: "gone-too-early",
    rule: "B8, S2",
    ...lease,
    bounds: two,
    off: "B8_GONE_TOO_EARLY",
    expected: "half_applied",
    description: "a committed lease is called gone before it is applied, which drops its claim",
  },
  {
    name: "not-silent",
    rule: "B8",
    ...lease,
    bounds: two,
    off: "B8_NOT_SILENT",
    expected: "grant_dropped",
    description: "a replaced instance calls an attempt of its successor gone, which is then granted",
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
    description: "a rollback overwrites a commit whose messages are in transit",
  },
  {
    name: "decision-not-flushed",
    rule: "C2",
    ...lease,
    bounds: two,
    off: "C2_NOT_FLUSHED",
    expected: "wrongly_applied",
    description: "a commit is sent before its row is durable: a crash loses it after a shard applied it",
  },
  {
    name: "reads-unflushed",
    rule: "C2, B8",
    ...lease,
    bounds: two,
    off: "C2_READ_UNFLUSHED",
    expected: "wrongly_applied",
    description: "an inquiry is answered from a row that is not durable, with the same result",
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
    description: "a repeated commit restores a claim that was destroyed in the meantime",
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
    description: "a hold expires although its lease may be granted",
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
    description: "a begin that is running when its lease is rolled back is granted",
  },
  {
    name: "not-asked",
    rule: "R2",
    ...lease,
    bounds: reader,
    off: "R2_NOT_ASKED",
    expected: "untrue_lookup",
    description: "a lookup returns a name that is not granted and may never be",
  },
  {
    name: "destroy-not-asked",
    rule: "R2, C3",
    ...lease,
    bounds: [...reader, "DESTROY"],
    off: "R2_DESTROY_NOT_ASKED",
    expected: "untrue_lookup",
    description: "a lookup returns a claim whose destroy was committed and acknowledged",
  },
  {
    name: "lookup-by-lease",
    rule: "R2",
    ...lease,
    bounds: reader,
    off: "R2_BY_LEASE",
    expected: "wrongly_applied",
    description: "an answer about the lease is used for the hold of an older attempt",
  },
  {
    name: "not-read-again",
    rule: "R2, M1",
    ...lease,
    bounds: reader,
    off: "R2_NOT_READ_AGAIN",
    expected: "untrue_lookup",
    description: "the bucket's owner changed while the ledger was asked",
  },
  {
    name: "remembers",
    rule: "R2",
    ...lease,
    bounds: reader,
    off: "R2_REMEMBERS",
    expected: "untrue_lookup",
    description: "a cached `granted` returns a name whose lease was rolled back",
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
    description: "a verdict about one hold is applied to a later hold",
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
    description: "an outcome is pruned before it is applied, which orphans its holds",
  },
  {
    name: "replaced-writes",
    rule: "Platform",
    ...lease,
    bounds: two,
    off: "REPLACED_WRITES",
    expected: "grant_dropped",
    description: "two instances of one ledger can both write, and both grant",
  },
];

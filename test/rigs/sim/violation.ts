/** What a run can find: the number of an invariant or of a rule, and a sentence. */
export class Violation extends Error {
  readonly rule: string;

  constructor(rule: string, message: string) {
    super(message);
    this.name = "Violation";
    this.rule = rule;
  }
}

/** The invariants, in the product's words. Checked after every step, or when the event they are about happens. */
export const invariants = {
  I1: "a name has at most one owner: one claim, on the shard that the hash names, and rows in at most one cell",
  I2: "ownership changes only by a destroy of the owner and a later create, each with a larger epoch",
  I3: "a bucket is held by at most one execution, and only over a claim that its cell may touch, and of the epoch that it named",
  I4: "a granted lease holds every bucket of its batch until it is decided",
  I5: "a decided lease is applied whole: committed everywhere, or nowhere; a name in use keeps its claim",
  I6: "an outcome never changes, and a granted lease is decided by its cell or an operator, never by a timer",
  I7: "no decision leaves before its row is durable, and no release of an attempt that is granted",
  I8: "an attempt belongs to one instance and one lease, and asks a shard once",
  I9: "what a ledger answers to a question was durable, and what it gave up is never granted",
  I10: "the same begin again is answered the same, another batch under its UUID is refused",
  I11: "unfinished work always has a wake-up call",
  I12: "a lease that is granted throughout a scan is in it, and so is a record",
  I13: "the fleet record comes to hold what the ledgers hold",
  I14: "no cell changes or sees a lease of another",
  I15: "a lookup never shows a name whose lease was not granted",
  I16: "limits hold, and work comes to an end",
  I17: "a cell whose freeze was acknowledged is granted nothing, and a key whose revocation was acknowledged does nothing",
  I18: "what the clients were told has an order in which it is true: every bucket is an owner register with leases",
  I19: "a verification gives up no name that a row of its cell uses, and what it takes says what its row says",
  I20: "a verification changes no claim that is young, and none of a row that is",
  I21: "a digest is that of its claims, and a range that a verification took for equal was equal, without holds and without anything young",
  I22: "at rest a verification leaves rows and claims in full agreement, and another one changes nothing",
  I23: "what a verification changes is stored as counted before it is changed, and stays counted through all its runs",
} as const;

export type Invariant = keyof typeof invariants;

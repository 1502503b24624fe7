/** A finding of a run: the number of the invariant or rule, and a sentence. */
export class Violation extends Error {
  readonly rule: string;

  constructor(rule: string, message: string) {
    super(message);
    this.name = "Violation";
    this.rule = rule;
  }
}

/**
 * The invariants. Each is checked after every step, or when the event that it is about happens. I53 was about
 * the withdrawn rules J1 to J4. A number is never used again.
 */
export const invariants = {
  I1: "a name has at most one owner: one claim, on its own shard, and rows in at most one cell",
  I2: "a name changes owners only by a destroy and a later create, each with a larger epoch",
  I3: "at most one execution holds a bucket, over a claim that its cell may change, with the epoch it gave",
  I4: "a granted lease holds every bucket of its batch until it is decided",
  I5: "a decision is applied to the whole lease, and a name in use keeps its claim",
  I6: "an outcome never changes, and only the lease's cell or an operator decides it",
  I7: "no decision is sent before its row is durable, and no granted attempt is released",
  I8: "an attempt belongs to one instance and one lease, and sends one prepare to a shard",
  I9: "a ledger's verdict was durable, and an execution that was called gone is never granted",
  I10: "a repeated begin gets the same answer, and another batch with its UUID is refused",
  I11: "an object with unfinished work always has an alarm",
  I12: "a scan contains every lease and record that existed throughout it",
  I13: "the projection in D1 ends up with what the ledgers have",
  I14: "no cell can change or see another cell's lease",
  I15: "a lookup never shows a name whose lease was not granted",
  I16: "limits hold, and all work ends",
  I17: "an acknowledged freeze, drain or revocation holds: nothing else is granted after it",
  I18: "the answers that clients received are linearizable for every bucket",
  I19: "a verification gives up no name that a row uses, and claims that it takes match their rows",
  I20: "a verification changes no recent claim and no claim of a recent row",
  I21: "a digest matches its claims, asks about holds, and a range treated as equal was equal and settled",
  I22: "in the end, a verification makes rows and claims agree, and another one changes nothing",
  I23: "a verification saves the count of its changes before it makes them, and keeps it across runs",
  I24: "a part that went back in time notices when it is told, and refuses everything from then on",
  I25: "a reconciled part gives nobody a name that another cell's rows or leases have",
  I26: "a directory that lost what a cron run has told others notices it, and gets back what D1 has",
  I27: "a name has a type that was in use before its first hold, and is canonical by the rule of that type",
  I28: "a type in use never changes or disappears, and a change replaces the set that its operator has read",
  I29: "no request is refused for a type that was declared all the time, however old an isolate's copy is",
  I30: "a lookup finds every name that was claimed by the rule of its type, and shows its type",
  I31: "a router's answer was true within its bound, and a stale one within the grace period",
  I32: "a router never shows a smaller epoch or position of a name than it has shown",
  I33: "an operator's change has one audit entry, and no entry is dropped before D1 has it",
  I34: "reports and contradictions are durable when they are answered, and reports are not too frequent",
  I35: "a shard keeps each claim that has ended, as it was, and says from when on it has all",
  I36: "a removal starts only from a drained cell without leases, and releases its claims and nothing else",
  I37: "the directory marks a removed cell once, and the cell stays removed whatever part goes back in time",
  I38: "a removed cell has no name once all parts are reconciled",
  I39: "a change of the identities replaces those that its operator has read, and an accepted loss ends all",
  I40: "a renewal is of a granted lease, durable when answered, and keeps reconciliation away for a time",
  I41: "no begin gets a name for which another one has waited longer",
  I42: "a name that is free goes to those who wait for it, after a few offers at most",
  I43: "a begin that waits for a name has released all that its last attempt got",
  I44: "a shard's change feed tells every change of its claims and leases, in order, once it is durable",
  I45: "a scrub reports nothing while all parts follow the rules, whatever happens meanwhile",
  I46: "a pass reads each row once, across crashes, and finds each row that others have changed",
  I47: "a name is served by one shard at most, also while the deployment gets more shards",
  I48: "no claim or hold is lost or changed when its name moves to another shard",
  I49: "a growth ends, and leaves every row on its shard; D1 had its cut before anybody was told",
  I50: "a claim moves to another cell only by a transfer that was cut as both had verified it, and once",
  I51: "while a transfer holds a scope, neither cell changes a claim of it, and its holds end with it",
  I52: "a lookup shows the source of a transfer until the cut, and the destination from then on",
  I54: "what a source lost before it handed over is given to nobody by the shards that got its names",
  I55: "when parts go back, transfers leave each name with the cell that works with it, and decisions stay",
  I57: "a start of a shard finds exactly the holds that its log has",
  I56: "no operation starts beside one that excludes it, and a cut has the word of each shard of before",
  I58: "code never reads or writes a format that it does not speak, and nothing is refused without that",
} as const;

export type Invariant = keyof typeof invariants;

import { registerHooks } from "node:module";
import { existsSync, readFileSync } from "node:fs";
import type { Invariant } from "./violation.ts";

const PROJECT = new URL("../../../", import.meta.url);

export interface Patch {
  /** The path from the project's root. */
  file: string;
  /** Must occur exactly once in the file. Any whitespace matches any other, so formatting does not matter. */
  find: string;
  put: string;
}

/** A bug that the simulator must find: a change of the protocol's source. */
interface Bug {
  /** What it breaks: a rule of docs/reference/protocol.md, or an invariant. */
  breaks: string;
  /** The invariants that it may violate. A violation of any other invariant does not count as found. */
  violates: readonly Invariant[];
  patches: Patch[];
}

const one = (
  breaks: string,
  violates: readonly Invariant[],
  file: string,
  find: string,
  put: string,
): Bug => ({
  breaks,
  violates,
  patches: [{ file, find, put }],
});

/**
 * Bugs that are found so rarely that none of the first 300 seeds finds them. They have no known seed, so only
 * the deep suite looks for them, with more seeds.
 */
export const rareBugs: ReadonlySet<string> = new Set([
  "the cut is told without a copy in D1",
  "a new shard keeps what an aborted growth has left",
  "a transfer is aborted although a shard knows of its cut",
  "a new shard is read before all is read of the others",
  "a ledger that has lost a removal does not notice it when it is told",
  "D1 gets keys without the point of the directory that has them",
  "a shard carries out a message of a new instance, and keeps the point of the last one",
  "a late prepare of a finished transfer is cut when its ledger is reconciled",
  "a finished transfer is cut again on a shard that went back, when its ledger is reconciled",
  "a reconciliation forgets a cut that the ledger has",
  "a step says that nothing was left because others released what it listed",
  "a digest adds up parts of different moments",
  // An outcome must be old before it is applied or examined. Unit tests find these.
  "outcomes are forgotten that are pending",
  "outcomes are forgotten that were not examined",
]);

/**
 * The simulator has each of these bugs, and a run plants one. The files on disk do not change. If a piece of
 * source no longer exists, no simulator is made, so a bug that is not planted cannot pass as not found.
 */
export const bugs: Record<string, Bug> = {
  // Formats
  "an object accepts a sender that cannot read the format in force": one(
    "M9",
    ["I58"],
    "src/coordinator/kernel/tables.ts",
    "return speaks >= this.#stored.format;",
    "return speaks >= oldestFormat(this.#stored.format);",
  ),
  "an object accepts a message of a later format": one(
    "M9",
    ["I58"],
    "src/coordinator/kernel/tables.ts",
    "if (format > this.#speaks)",
    "if (format > this.#speaks + 1)",
  ),
  "an object does not store a newer format": one(
    "M9",
    ["I58"],
    "src/coordinator/kernel/tables.ts",
    'this.#sql.transaction(["raise_format"], () => this.raise(format));',
    "this.#stored = { ...this.#stored, format };",
  ),
  "an object takes over an older format": one(
    "M9",
    ["I58"],
    "src/coordinator/kernel/tables.ts",
    "if (format > this.#stored.format) this.#follow",
    "if (format !== this.#stored.format) this.#follow",
  ),
  "a new object starts with the newest format that its code speaks": one(
    "M9",
    ["I58"],
    "src/coordinator/kernel/tables.ts",
    "Math.max(stored.format, oldestFormat(speaks))",
    "Math.max(stored.format, speaks)",
  ),
  "the Worker starts with the newest format that its code speaks": one(
    "M9",
    ["I58"],
    "src/coordinator/isolate/known-placement.ts",
    "this.#speaks = speaks;",
    "this.#speaks = speaks; this.#format = speaks;",
  ),
  "an answer is sent although the format was raised meanwhile": one(
    "M1",
    ["I58"],
    "src/coordinator/kernel/tables.ts",
    "if (!this.#isReadBy(sender)) throw",
    "if (sender.speaks === undefined) throw",
  ),
  "code starts with tables of a later format": one(
    "M5",
    ["I58"],
    "src/coordinator/kernel/tables.ts",
    "if (format > speaks)",
    "if (format > speaks + 1)",
  ),
  "a step does not wait for its format": one(
    "M5",
    ["I58"],
    "src/coordinator/kernel/tables.ts",
    "isLate(step) && step.format > this.#stored.format",
    "isLate(step) && step.format < 0",
  ),
  "the steps that waited for a format are left out": one(
    "M5",
    ["I58"],
    "src/coordinator/kernel/tables.ts",
    "this.#stored = { ...this.#stored, format }; this.#carryOut();",
    "this.#stored = { ...this.#stored, format }; " +
      'writeMeta(this.#sql, "tables", JSON.stringify(this.#stored));',
  ),
  // Operations
  "a restore starts beside a growth": one(
    "A5",
    ["I56"],
    "src/coordinator/capabilities/operations/directory.ts",
    "if (other !== undefined) return operationRunning(other);",
    "if (other?.id === operation.id) return operationRunning(other);",
  ),
  "a growth starts beside a restore": one(
    "A5",
    ["I56"],
    "src/coordinator/capabilities/growth/directory.ts",
    "if (other !== undefined) return operationRunning(other);",
    'if (other?.kind === "growth") return operationRunning(other);',
  ),
  "a cut needs no word of the shards": one(
    "G1",
    ["I56"],
    "src/coordinator/capabilities/growth/directory.ts",
    "for (let shard = 0; shard < growth.from; shard += 1)",
    "for (let shard = growth.to; shard < growth.from; shard += 1)",
  ),
  "a cut is ordered while a shard is reconciled": one(
    "G1",
    ["I56"],
    "src/coordinator/capabilities/growth/directory.ts",
    "if (reconciled !== undefined) return operationRunning(reconciled);",
    'if (reconciled?.kind === "growth") return operationRunning(reconciled);',
  ),
  // More shards
  "a shard accepts messages with the placement from before its change": one(
    "G3",
    ["I1", "I2", "I3", "I4", "I5", "I18"],
    "src/coordinator/kernel/placement-guard.ts",
    "this.#confirmed === undefined || this.#confirmed === message.placement",
    "this.#confirmed === undefined || !isNewer(message.placement, this.#confirmed)",
  ),
  "what waits for its transaction is carried out after a change of the placement": {
    breaks: "G3",
    violates: ["I1", "I2", "I4", "I5", "I18", "I31", "I52"],
    patches: [
      {
        file: "src/coordinator/kernel/shard/shard.ts",
        find: "if (placementGuard.refuseOutdated(message) !== undefined) return",
        put: "if (message === undefined) return",
      },
      {
        file: "src/coordinator/kernel/shard/shard.ts",
        find: "const late = placementGuard.refuseOutdated(message) ?? standing.current.stopped;",
        put: "const late = standing.current.stopped;",
      },
    ],
  },
  "the cut is told without a copy in D1": one(
    "G2",
    ["I49"],
    "src/coordinator/capabilities/growth/edge/cron.ts",
    "if (!copied.ok) return copied; return askAgain(driver, ({ envelope, objects }) => " +
      "objects.directory().confirmCut({ ...envelope, id: growth.id, growthCopiedAt: copied.value }),",
    "return askAgain(driver, ({ envelope, objects }) => " +
      "objects.directory().confirmCut({ ...envelope, id: growth.id, growthCopiedAt: growth.position }),",
  ),
  "a name that changes after it was copied is not copied again": one(
    "G4",
    ["I2", "I4", "I5", "I48"],
    "src/coordinator/capabilities/growth/source.ts",
    "this.#part.names.noteChange(key, this.#lastChange);",
    "",
  ),
  "a source goes on after a message to a new shard is lost": one(
    "G4",
    ["I2", "I4", "I5", "I48"],
    "src/coordinator/capabilities/growth/source.ts",
    'if (sent.includes("stopped")) { this.#isChecked = false; return; }',
    "",
  ),
  "new shards are not told that a growth was aborted": one(
    "G1",
    ["I49"],
    "src/coordinator/capabilities/growth/edge/cron.ts",
    "[...Array(growth.to).keys()]",
    "[...Array(growth.from).keys()]",
  ),
  "a new shard stores late messages of an aborted growth": one(
    "G1",
    ["I49"],
    "src/coordinator/capabilities/growth/target.ts",
    "this.#aborted !== undefined && this.#aborted.position >= growth.position",
    "this.#aborted === undefined && growth.position < 0",
  ),
  "a new shard keeps what an aborted growth has left": one(
    "G4",
    ["I1", "I2", "I3", "I4", "I5", "I36", "I48"],
    "src/coordinator/capabilities/growth/target.ts",
    "wipe: FIRST_NAME,",
    "wipe: null,",
  ),
  "a new shard serves names before they are handed over": one(
    "G5",
    ["I1", "I2", "I3", "I4", "I5", "I18", "I31", "I32", "I44"],
    "src/coordinator/capabilities/growth/target.ts",
    "return sources[shardOf(type, canonical, from)]?.isActive === true;",
    "return sources[shardOf(type, canonical, from)]?.isActive !== null;",
  ),
  "a hold does not move": one(
    "G6",
    ["I2", "I4", "I5"],
    "src/coordinator/capabilities/growth/target.ts",
    "hold: name.hold === null ? null :",
    'hold: name.hold === null || message.copy !== "" ? null :',
  ),
  "a hold that moves does not say who granted it": one(
    "G6",
    ["I4", "I5", "I9", "I48"],
    "src/coordinator/capabilities/growth/target.ts",
    "granted_by: name.hold.granted_by ?? source",
    "granted_by: name.hold.granted_by",
  ),
  "an inquiry does not name the shard that granted the hold": one(
    "G6",
    ["I4", "I9"],
    "src/coordinator/kernel/shard/inquirer.ts",
    "...(grantedBy === null ? {} : { grantedBy }),",
    "",
  ),
  "decisions go to the shard that granted the hold": one(
    "G6",
    ["I5", "I11"],
    "src/coordinator/kernel/ledger/deliveries.ts",
    "[grantedBy, ...added].map((shard) => ({",
    "[grantedBy].map((shard) => ({",
  ),
  "a decision counts as applied although its names are not handed over": one(
    "G5",
    ["I5", "I11"],
    "src/coordinator/kernel/shard/shard.ts",
    "...waiting.map(({ lease }) => lease),",
    "",
  ),
  "a decision counts as confirmed after its names have moved": one(
    "G6",
    ["I5", "I11"],
    "src/coordinator/kernel/ledger/deliveries.ts",
    "if (open.placement !== placement) open.remaining = undefined;",
    "",
  ),
  "positions do not continue above those of the source": one(
    "G7",
    ["I2"],
    "src/coordinator/capabilities/growth/target.ts",
    "this.#part.log.jumpTo(point?.position ?? 0);",
    "this.#part.log.reset();",
  ),
  "a source deletes what has moved when one new shard has confirmed it": one(
    "G7",
    ["I2", "I4", "I5", "I48", "I54"],
    "src/coordinator/capabilities/growth/source.ts",
    "return Object.values(targets).every(({ isActive }) => isActive);",
    "return Object.values(targets).some(({ isActive }) => isActive);",
  ),
  "a source accepts its loss while the shards that got its names are complete": one(
    "G7",
    ["I54"],
    "src/coordinator/capabilities/loss/shard.ts",
    "if (complete.length === 0) return undefined;",
    "return undefined;",
  ),
  "a growth ends before every ledger has told what it has seen": one(
    "G7",
    ["I54"],
    "src/coordinator/capabilities/growth/edge/cron.ts",
    "if (left !== null) return ok(left);",
    "",
  ),
  "a loss after the end of a growth reaches the new shards": one(
    "G7",
    ["I54"],
    "src/coordinator/capabilities/growth/source.ts",
    "if (growth?.id === id && this.#isDone(growth)) this.#forget();",
    "",
  ),
  "a source keeps its reports when it stops to serve names": one(
    "G6",
    ["I31"],
    "src/coordinator/capabilities/growth/source.ts",
    "if (this.#part.standing.current.stopped === undefined) this.#part.log.reset();",
    "",
  ),
  "a router shows an answer from before a name moved": one(
    "Q6",
    ["I32"],
    "src/users/router/lookups/floors.ts",
    "return sinceMs < this.#positions.movedMs(shard, key);",
    "return false;",
  ),
  "a shard lists names before it has deleted those that have moved": one(
    "G8",
    ["I12", "I21", "I22", "I45"],
    "src/coordinator/capabilities/growth/residence.ts",
    "return this.#part.target.isWhole && this.#part.source.isWhole;",
    "return this.#part.target.isWhole;",
  ),
  // The scrub
  "a scrub forgets its cursor": one(
    "Z4",
    ["I46"],
    "src/coordinator/capabilities/scrub/scrub.ts",
    "isNew ? null : running.cursor",
    "isNew || running.pass.rows % 2 === 1 ? null : running.cursor",
  ),
  "a scrub skips what a step has left of a table": one(
    "Z4",
    ["I46"],
    "src/coordinator/capabilities/scrub/shard.ts",
    "if (last !== undefined && rows.length === limit)",
    "if (last !== undefined && rows.length > limit)",
  ),
  "a ledger's scrub skips the lease after those of a step": one(
    "Z4",
    ["I46"],
    "src/coordinator/capabilities/scrub/ledger.ts",
    "behind: [last?.created_position ?? after]",
    "behind: [rows[read]?.created_position ?? last?.created_position ?? after]",
  ),
  "a scrub compares no digests": one(
    "Z2",
    ["I46"],
    "src/coordinator/capabilities/scrub/row-checks.ts",
    "words.every((word, index) => word === stored[index])",
    "words.length === stored.length",
  ),
  "a scrub does not know the shard's position": one(
    "Z2",
    ["I46"],
    "src/coordinator/capabilities/scrub/row-checks.ts",
    "epoch > position || epoch <= earlierEpoch",
    "epoch <= earlierEpoch",
  ),
  "a scrub takes any hold on a name for the lease's own": one(
    "Z3",
    ["I46"],
    "src/coordinator/capabilities/scrub/shard.ts",
    "hold !== undefined && executionKey(hold) === wanted ? [] : [index]",
    'hold !== undefined && wanted !== "" ? [] : [index]',
  ),
  "a scrub reports a lease that was decided while the shard answered": one(
    "Z3",
    ["I45"],
    "src/coordinator/capabilities/scrub/ledger.ts",
    "if (!isSame) return [];",
    "",
  ),
  "a scrub takes a decision on its way for one that is forgotten": one(
    "Z3",
    ["I45"],
    "src/coordinator/kernel/ledger/deliveries.ts",
    "this.#open.has(lease) || this.#applied.has(lease) || isLaterLoaded",
    "this.#applied.has(lease) || isLaterLoaded",
  ),
  // Transfers
  "a create ignores the range hold of its scope": one(
    "Y3",
    ["I51"],
    "src/coordinator/capabilities/transfer/wide-holds.ts",
    "return this.#part.ranges.on({ from: cell, scope });",
    "return undefined;",
  ),
  "a claim of a scope that is held can be changed": one(
    "Y3",
    ["I51"],
    "src/coordinator/capabilities/transfer/wide-holds.ts",
    "return range !== undefined && involves(range, cell) ? range : undefined;",
    "return range !== undefined && involves(range, `no ${cell}`) ? range : undefined;",
  ),
  "a prepare ignores the holds in its scope": one(
    "Y2",
    ["I51"],
    "src/coordinator/capabilities/transfer/shard.ts",
    "return leases.length === 0",
    "return leases.length >= 0",
  ),
  "a shard takes the range hold of one source for that of another": one(
    "Y2",
    ["I50", "I51", "I52"],
    "src/coordinator/capabilities/transfer/range-holds.ts",
    "=> `${from} ${scope}`;",
    "=> `${from.slice(0, 0)} ${scope}`;",
  ),
  "a transfer is prepared while another one gives claims to its source": one(
    "Y2",
    ["I50", "I51"],
    "src/coordinator/capabilities/transfer/shard.ts",
    "involving(from).find((range) => range.scope === scope);",
    "involving(from).find((range) => range.scope === scope && range.from_cell === from);",
  ),
  "a prepared transfer is called cut": one(
    "Y1",
    ["I9", "I50"],
    "src/coordinator/kernel/ledger/inquiry.ts",
    'return "granted";',
    'return row.transfer === null ? "granted" : "committed";',
  ),
  "a moved claim keeps its epoch": one(
    "Y5",
    ["I35", "I44", "I50"],
    "src/coordinator/capabilities/transfer/scope-store.ts",
    "(cell, epoch, updated_at_ms) = (?, ?, max",
    "(cell, epoch, updated_at_ms) = (?, iif(? > 0, epoch, 0), max",
  ),
  "routers are not told which names a transfer may move": one(
    "Y6",
    ["I31"],
    "src/coordinator/capabilities/transfer/shard.ts",
    "for (const key of this.#part.scopes.keys(range.from_cell, range.scope)) " +
      "this.#part.log.noteHeld(keyHash(key));",
    "",
  ),
  "a transfer is cut before the shards know that it may be": one(
    "Y6",
    ["I31", "I50", "I52"],
    "src/coordinator/capabilities/transfer/ledger.ts",
    "(await this.#part.sightings.current.compareAll()) ?? (await this.#precommit(call));",
    "await this.#part.sightings.current.compareAll();",
  ),
  "a transfer is aborted although a shard knows of its cut": one(
    "Y6",
    ["I55"],
    "src/coordinator/capabilities/transfer/ledger.ts",
    "(await this.#part.sightings.current.compareAll()) ?? (await this.#precommit(call));",
    "await this.#precommit(call);",
  ),
  "a transfer is cut although a shard has not stored that it may be": one(
    "Y6",
    ["I31", "I50", "I52"],
    "src/coordinator/capabilities/transfer/ledger.ts",
    "if (silent === -1) return undefined;",
    "if (silent < sent.length) return undefined;",
  ),
  "an aborted transfer leaves its range holds": one(
    "Y6",
    ["I11", "I51"],
    "src/coordinator/capabilities/transfer/shard.ts",
    'if (as !== "committed" && range.cut_at_ms === null) return this.#part.ranges.delete(range);',
    'if (as === "rolled_back") return;\n    if (as === "gone") return this.#part.ranges.delete(range);',
  ),
  "the decision of a transfer ends a later range hold of its scope": one(
    "Y1",
    ["I4", "I50", "I51"],
    "src/coordinator/capabilities/transfer/wide-holds.ts",
    "const isHeld = range !== undefined && decides(decision, range);",
    "const isHeld = range !== undefined;",
  ),
  "a transfer is cut without verification": one(
    "Y6",
    ["I50"],
    "src/coordinator/capabilities/transfer/ledger.ts",
    "if (missing.length === 0) return undefined;\n    return refused(",
    "if (missing.length >= 0) return undefined;\n    return refused(",
  ),
  "a late prepare of a finished transfer is cut when its ledger is reconciled": one(
    "Y10",
    ["I55"],
    "src/coordinator/capabilities/loss/ledger.ts",
    "if (isCutHere && (row === undefined || this.#part.store.isApplied(row))) return false;",
    `const isOfGrant = stored?.record.shards.some((each) => each.epoch === heldEpoch && each.shard === shard);
     if (isCutHere && (row === undefined || this.#part.store.isApplied(row)) && isOfGrant) return false;`,
  ),
  "a finished transfer is cut again on a shard that went back, when its ledger is reconciled": one(
    "Y10",
    ["I55"],
    "src/coordinator/capabilities/loss/ledger.ts",
    "if (isCutHere && (row === undefined || this.#part.store.isApplied(row))) return false;",
    `const isOfGrant = stored?.record.shards.some((each) => each.epoch === heldEpoch && each.shard === shard);
     if (isCutHere && (row === undefined || this.#part.store.isApplied(row)) && !isOfGrant) return false;`,
  ),
  "a reconciliation forgets a cut that the ledger has": one(
    "Y10",
    ["I55"],
    "src/coordinator/capabilities/loss/ledger.ts",
    'const isCutHere = row?.state === "COMMITTED" || stored?.state === "CUT";',
    "const isCutHere = isCut;",
  ),
  "a ledger that accepts a loss does not mark its prepared transfers": one(
    "Y10",
    ["I55"],
    "src/coordinator/capabilities/transfer/index.ts",
    "resumed: () => transferStore.markRebuilt(),",
    "",
  ),
  "a cell decides a transfer that was rebuilt": one(
    "Y10",
    ["I55"],
    "src/coordinator/capabilities/transfer/ledger.ts",
    'if (transfer.record.isRebuilt && call.party !== "operator") {',
    'if (transfer.record.isRebuilt && call.party === "nobody") {',
  ),
  "a switch-back ignores what the destination has claimed since": one(
    "Y9",
    ["I55"],
    "src/coordinator/capabilities/transfer/shard.ts",
    "if (unchanged === undefined || count !== unchanged.count) return false;",
    "if (unchanged === undefined || count !== unchanged.count) return true;",
  ),
  "a cut compares only the number of rows": one(
    "Y6",
    ["I50"],
    "src/coordinator/capabilities/transfer/ledger.ts",
    "one.count === other.count && one.hash === other.hash;",
    "one.count === other.count && one.hash !== '';",
  ),
  "a lookup shows the source without asking about the range hold": one(
    "Y4",
    ["I52"],
    "src/coordinator/capabilities/transfer/wide-holds.ts",
    'return { kind: "ask", hold: range, without };',
    "return without;",
  ),
  "an answer about a name that a transfer may have moved counts as settled": one(
    "Y4",
    ["I31"],
    "src/coordinator/capabilities/transfer/wide-holds.ts",
    "isHeld: range.is_precommitted === 1 };",
    "isHeld: false };",
  ),
  "a list does not ask about the transfers of its cell": one(
    "Y4",
    ["I52"],
    "src/coordinator/capabilities/transfer/wide-holds.ts",
    "if (open.length > 0) {",
    "if (open.length > 1_000) {",
  ),
  "a list shows claims that are half moved": one(
    "Y4",
    ["I52"],
    "src/coordinator/capabilities/transfer/shard.ts",
    "if (refusal !== undefined) return { value: { ok: false, refusal }, rows: 0 };",
    "",
  ),
  "a shard confirms a cut before it has moved all claims": one(
    "Y5",
    ["I51"],
    "src/coordinator/kernel/shard/shard.ts",
    "[...done.flatMap((each) => each.unapplied), ...unfinishedOf(part, message)]",
    "done.flatMap((each) => each.unapplied)",
  ),
  "a moved claim is not kept": one(
    "K1",
    ["I35"],
    "src/coordinator/capabilities/transfer/shard.ts",
    "for (const hook of this.#part.hooks.claimsMoving) hook(moving, nowMs);",
    "",
  ),
  // What operators change
  "a freeze has no audit entry": one(
    "O1",
    ["I33"],
    "src/coordinator/capabilities/cells/ledger.ts",
    "if (message.state !== before) auditState(part, message, before);",
    "",
  ),
  "an operator's decision has no audit entry": one(
    "O1",
    ["I33"],
    "src/coordinator/kernel/ledger/decisions.ts",
    "if (within === undefined) for (const hook of this.#part.hooks.decided) hook(request, row);",
    "if (within === undefined);",
  ),
  "a freeze that changes nothing has an audit entry": one(
    "O1",
    ["I33"],
    "src/coordinator/capabilities/cells/ledger.ts",
    "if (message.state !== before) auditState",
    "auditState",
  ),
  "a ledger drops all of its audit entries once some were copied": one(
    "O2",
    ["I33"],
    "src/coordinator/capabilities/audit/audit.ts",
    '"DELETE FROM audit WHERE number <= (SELECT number FROM audit WHERE id = ?)"',
    '"DELETE FROM audit WHERE ? IS NOT NULL"',
  ),
  "an accepted loss of a shard has no audit entry": one(
    "O1",
    ["I33"],
    "src/coordinator/capabilities/loss/shard.ts",
    'this.#append(operator, "reconcile_part", "reconciling");',
    "",
  ),
  "a finished reconciliation has no audit entry": one(
    "O1",
    ["I33"],
    "src/coordinator/capabilities/loss/shard.ts",
    'this.#append(operator, "finish_part", "complete");',
    "",
  ),
  // What the change feed tells
  "the change feed tells no grants": one(
    "F2",
    ["I44"],
    "src/coordinator/capabilities/feed/logged-changes.ts",
    'this.isTold(hold) || fate === "moved" ? [] : ["granted"]',
    "[]",
  ),
  "the change feed tells no rollbacks": one(
    "F2",
    ["I44"],
    "src/coordinator/kernel/shard/end-holds.ts",
    'if (as === "rolled_back") notes.noteRolledBack(hold, isPart);',
    "",
  ),
  "the change feed tells the rollback of an attempt that was never granted": one(
    "F2",
    ["I44"],
    "src/coordinator/kernel/shard/end-holds.ts",
    'if (as === "rolled_back") notes',
    'if (as !== "committed") notes',
  ),
  "a claim is released with the epoch of its destroy": one(
    "F2",
    ["I44"],
    "src/coordinator/capabilities/feed/logged-changes.ts",
    'claims.push(["released", claim.uuid, claim.epoch, detailsOf(claim)]);',
    'claims.push(["released", claim.uuid, epoch, detailsOf(claim)]);',
  ),
  "a lease is told as granted while its begin is running": one(
    "F3",
    ["I44"],
    "src/coordinator/kernel/shard/inquirer.ts",
    '(hold) => verdicts.get(executionKey(hold)) === "granted" && !this.#part.log.notes.current.isTold(hold),',
    "(hold) => !this.#part.log.notes.current.isTold(hold),",
  ),
  "the change feed tells what is not durable": one(
    "F4",
    ["I44"],
    "src/coordinator/capabilities/feed/index.ts",
    'listChanges: method<ChangesRequest, ChangesPage>("read")',
    'listChanges: method<ChangesRequest, ChangesPage>("peer")',
  ),
  "an incomplete log is told as if it were complete": one(
    "F4",
    ["I44"],
    "src/coordinator/kernel/shard/shard-log.ts",
    "if (position < first) return undefined;",
    "",
  ),
  "a page of changes ends within a transaction": one(
    "F4",
    ["I44"],
    "src/coordinator/capabilities/feed/changes-page.ts",
    "if (isWanted(change, movedFrom, filter)) changes.push(change);",
    "if (isWanted(change, movedFrom, filter)) changes.push(change); " +
      "if (changes.length >= filter.limit) break;",
  ),
  "the change feed of a cell has the changes of others": one(
    "F5",
    ["I44"],
    "src/coordinator/capabilities/feed/changes-page.ts",
    "if (filter.cell !== null && cell !== filter.cell && movedFrom !== filter.cell) return false;",
    "",
  ),
  // The change feed of all shards
  "a new shard is read before all is read of the others": one(
    "G9",
    ["I44"],
    "src/coordinator/capabilities/feed/edge/read-changes.ts",
    "while (waiting.length > 0 && isAtEnd() && !isFull()) {",
    "while (waiting.length > 0 && !isFull()) {",
  ),
  "a new shard is read from its newest position on": one(
    "G9",
    ["I44"],
    "src/coordinator/capabilities/feed/edge/read-changes.ts",
    "after === undefined ? null : (after.get(shard) ?? 0)",
    "after?.get(shard) ?? null",
  ),
  "rows of names that move count as changes that the log has dropped": one(
    "F4",
    ["I44"],
    "src/coordinator/kernel/shard/shard-log.ts",
    "if ((this.#sizes[slot] ?? 0) > 0) this.#noteDropped(slot);",
    "this.#noteDropped(slot);",
  ),
  // Begins that wait for names
  "a begin overtakes those who wait for a name": one(
    "B11",
    ["I41"],
    "src/coordinator/kernel/shard/prepare.ts",
    'finding.kind === "clear" ? this.#part.queues.current.firstBefore(op, request) : undefined',
    "undefined as Waiting | undefined",
  ),
  "the last one to wait for a name gets it first": one(
    "B11",
    ["I41"],
    "src/coordinator/capabilities/waiting/shard.ts",
    "queue.waiters.push(waiter);",
    "queue.waiters.unshift(waiter);",
  ),
  "a name that gets free wakes nobody": one(
    "B11",
    ["I42"],
    "src/coordinator/capabilities/waiting/shard.ts",
    "for (const queue of this.#changed) this.#next(queue);",
    "",
  ),
  "an offer that nobody takes never ends": one(
    "B11",
    ["I42"],
    "src/coordinator/capabilities/waiting/shard.ts",
    "this.#clock.after(this.#limits.offerMs, () => this.#miss(waiter))",
    "this.#clock.after(3_600_000, () => this.#miss(waiter))",
  ),
  "a begin keeps its holds while it waits": {
    breaks: "B11",
    violates: ["I43"],
    patches: [
      {
        file: "src/coordinator/kernel/ledger/begins.ts",
        find: "offer = undefined; await attempt.release();",
        put: `offer = undefined;
          if (end.kind !== "leased" || running.waitTime === undefined) await attempt.release();`,
      },
    ],
  },
  // What cells report
  "a report is answered before it is durable": {
    breaks: "U2",
    violates: ["I34"],
    patches: [
      {
        file: "src/coordinator/capabilities/status/ledger.ts",
        find: 'return this.#commits.submit("report_status", () => {',
        put: 'return Promise.resolve().then(() => this.#ports.sql.transaction(["report_status"], () => {',
      },
      {
        file: "src/coordinator/capabilities/status/ledger.ts",
        find: "return ok({ ...next, nowMs: now }); });",
        put: "return ok({ ...next, nowMs: now }); }));",
      },
    ],
  },
  "a ledger stores every report": one(
    "U3",
    ["I34"],
    "src/coordinator/capabilities/status/ledger.ts",
    "if (waitMs > 0)",
    "if (waitMs < 0)",
  ),
  "a contradiction is not counted": one(
    "U4",
    ["I34"],
    "src/coordinator/capabilities/status/index.ts",
    "decisionAnswered: (request, result) => contradictions.decided(request, result),",
    "",
  ),
  // What cells say of leases
  "a renewal is answered before it is durable": {
    breaks: "C8",
    violates: ["I40"],
    patches: [
      {
        file: "src/coordinator/capabilities/renewals/ledger.ts",
        find: 'return this.#commits.submit("renew", () => this.#write(request));',
        put:
          'return Promise.resolve().then(() => this.#ports.sql.transaction(["renew"], () => ' +
          "this.#write(request)));",
      },
    ],
  },
  "a decided lease is renewed": one(
    "C8",
    ["I40"],
    "src/coordinator/capabilities/renewals/ledger.ts",
    'if (row.state !== "GRANTED") return',
    'if (row.state === "GRANTED" && row.fence === 1) return',
  ),
  "a reconciliation ignores renewals": one(
    "C8",
    ["I40"],
    "src/users/cell/reconcile.ts",
    "if (idleMs >= staleMs)",
    "if (ageMs >= staleMs)",
  ),
  // Past claims
  "a replace keeps nothing of the claim that it ends": one(
    "K1",
    ["I35"],
    "src/coordinator/kernel/shard/store.ts",
    "const ends = [...destroy, ...replace];",
    "const ends = destroy;",
  ),
  "a period begins when the name was created": one(
    "K1",
    ["I35"],
    "src/coordinator/capabilities/past-claims/shard.ts",
    "claim.updated_at_ms, max(at_ms, claim.updated_at_ms)",
    "claim.created_at_ms, max(at_ms, claim.updated_at_ms)",
  ),
  "a read of periods leaves out the claim": one(
    "K2",
    ["I35"],
    "src/coordinator/capabilities/past-claims/periods.ts",
    "before === null ? store.claim(key) : undefined",
    "before === 0 ? store.claim(key) : undefined",
  ),
  "past claims are never dropped": one(
    "K3",
    ["I35"],
    "src/coordinator/capabilities/past-claims/shard.ts",
    "if (oldest === undefined || this.dueMs(nowMs) > nowMs) return;",
    "return;",
  ),
  "a shard that has accepted a loss counts as complete": one(
    "K4",
    ["I35"],
    "src/coordinator/capabilities/past-claims/shard.ts",
    "incompleteBefore(atMs: number): void {",
    "incompleteBefore(atMs: number): void { if (atMs > 0) return;",
  ),
  "an erasure has no audit entry": one(
    "K5",
    ["I33"],
    "src/coordinator/capabilities/past-claims/calls.ts",
    "if (result.erased > 0 || changes > 0) {",
    "if (result.erased < 0) {",
  ),
  // Removing a cell
  "a removal is approved with an open lease": one(
    "X2",
    ["I36"],
    "src/coordinator/capabilities/removal/ledger.ts",
    "if (open > 0 || unapplied > 0)",
    "if (open < 0)",
  ),
  "a removal is approved although the cell has changed since it was compared": one(
    "X2",
    ["I36"],
    "src/coordinator/capabilities/removal/ledger.ts",
    "if (position !== this.#part.positions.last)",
    "if (position > this.#part.positions.last)",
  ),
  "a removal does not name the epochs that it has listed": one(
    "X3",
    ["I36"],
    "src/coordinator/capabilities/removal/ledger.ts",
    "value: canonical,\n          epoch,",
    "value: canonical,",
  ),
  "a first step ignores what has changed since the comparison": one(
    "X3",
    ["I36"],
    "src/coordinator/capabilities/removal/ledger.ts",
    "if (removal.position !== positions.last)",
    "if (removal.position > positions.last)",
  ),
  "a first step ignores the version of the cell's state": one(
    "X3",
    ["I36"],
    "src/coordinator/capabilities/removal/ledger.ts",
    'if (stateVersion !== store.number("cell_state_version"))',
    "if (stateVersion < 0)",
  ),
  "a removal does not name the transfers to its cell": one(
    "Y8",
    ["I36"],
    "src/coordinator/capabilities/removal/ledger.ts",
    'const blocked = this.#transferRefusal("cut or abort");',
    "const blocked = undefined as Refusal | undefined;",
  ),
  "a step of a removal does not name the transfers that hold claims": one(
    "Y8",
    ["I36"],
    "src/coordinator/capabilities/removal/ledger.ts",
    "if (transfers.length > 0)",
    "if (transfers.length < 0)",
  ),
  "a transfer to a cell that is being removed is prepared": one(
    "Y8",
    ["I36"],
    "src/coordinator/capabilities/removal/ledger.ts",
    'const state = this.#part.store.cellState(); if (state === "REMOVING")',
    "const state = this.#part.store.cellState(); " +
      'if (state === "REMOVING" && request.caller.role === "operator")',
  ),
  "a removal skips shards whose names move": one(
    "G8",
    ["I36"],
    "src/coordinator/capabilities/removal/ledger.ts",
    "if (!answer.ok) return answer; const { claims, transfers } = answer.value;",
    "if (!answer.ok && answer.refusal.isMoving === true) continue; if (!answer.ok) return answer; " +
      "const { claims, transfers } = answer.value;",
  ),
  "a removal ends when the first shard has no claims": one(
    "X4",
    ["I36"],
    "src/coordinator/capabilities/removal/ledger.ts",
    "if (claims.length === 0) continue;",
    "if (claims.length === 0) return ok([]);",
  ),
  "a step says that nothing was left because others released what it listed": one(
    "X4",
    ["I38"],
    "src/coordinator/capabilities/removal/ledger.ts",
    "if (!released.ok || released.value.released > 0) return released;",
    "return released;",
  ),
  "a shard with claims of a removed cell goes back into service": one(
    "H6",
    ["I38"],
    "src/coordinator/capabilities/loss/shard.ts",
    "if (this.#part.store.claimsOf(cell, 1).length > 0) return cell;",
    "",
  ),
  "a shard with holds of a removed cell goes back into service": one(
    "H6",
    ["I38"],
    "src/coordinator/capabilities/loss/shard.ts",
    "if (holder !== undefined) return holder;",
    "void holder;",
  ),
  "the cron does not tell the directory of a removed cell": one(
    "X5",
    ["I37"],
    "src/coordinator/capabilities/removal/edge/cron.ts",
    "if (isRemoved || removed === null) continue;",
    "if (isRemoved || removed?.atMs !== 0) continue;",
  ),
  "the directory marks a removed cell again with every message": one(
    "X5",
    ["I33", "I37"],
    "src/coordinator/capabilities/removal/directory.ts",
    "if (before.removedAtMs !== null) return ok(before);",
    "",
  ),
  "a ledger that has lost a removal does not notice it when it is told": one(
    "X5",
    ["I37", "I38"],
    "src/coordinator/capabilities/removal/ledger.ts",
    'return isRemoved === true && this.#part.store.cellState() !== "REMOVED"',
    "return isRemoved === false",
  ),
  "a reconciled ledger does not take over the removal": one(
    "X5",
    ["I37", "I38"],
    "src/coordinator/capabilities/removal/ledger.ts",
    "if (removedAtMs !== null) this.#remove(",
    "if (removedAtMs === -1) this.#remove(",
  ),
  "the cron leaves a removed cell alone at once": one(
    "X5",
    ["I37"],
    "src/coordinator/cron/cron.ts",
    "const known = all.filter((cell) => cell === turn || !isClosed(cell));",
    "const known = all.filter((cell) => cell === turn || !isRemoved(cell));",
  ),
  // Reconciling parts that went back in time
  "a reconciling shard grants to any begin": one(
    "H6",
    ["I25"],
    "src/coordinator/kernel/shard/shard.ts",
    "wide.isWide(request) || request.isVerification === true ? undefined : incomplete",
    "wide.isWide(request) || request.cell !== '' ? undefined : incomplete",
  ),
  "a loss that an operator declares is not stored": one(
    "H4",
    ["I25"],
    "src/coordinator/capabilities/loss/history.ts",
    'if (!this.isLost) this.#notice(null, "an operator", { reason: operator.reason ?? "" });',
    "",
  ),
  "epochs start again after a loss": one(
    "E1",
    ["I25"],
    "src/coordinator/capabilities/loss/shard.ts",
    "this.#part.log.jumpTo(Math.max(before, seen.position) + POSITION_MARGIN);",
    "this.#part.log.jumpTo(before);",
  ),
  "a ledger accepts its loss without its holds": one(
    "H7",
    ["I25"],
    "src/coordinator/capabilities/loss/ledger.ts",
    "if (row !== undefined && !this.#isForgotten(row, attempt)) continue;",
    "continue;",
  ),
  "points of before an accepted loss still stop a part": one(
    "H6",
    ["I25"],
    "src/coordinator/kernel/instances.ts",
    "if (incarnation < this.#includedBefore) return true;",
    "",
  ),
  // Routers
  "a destroy is not in the log": one(
    "Q1",
    ["I31"],
    "src/coordinator/kernel/shard/shard.ts",
    "for (const hold of preparation.write())",
    "for (const hold of preparation.write().filter(({ kind }) => kind !== 'destroy'))",
  ),
  "every answer counts as settled": one(
    "Q2",
    ["I31"],
    "src/coordinator/kernel/shard/reader.ts",
    "const settled = reads.map(({ isHeld }) => !isHeld);",
    "const settled = reads.map(() => true);",
  ),
  "an answer has the position of a later turn": one(
    "Q2",
    ["I31"],
    "src/coordinator/kernel/shard/shard.ts",
    "isSettled && isHere[index] === true),\n        position,",
    // The pause is longer than in reality, because few lookups have a change between their turns.
    "isSettled && isHere[index] === true),\n" +
      "position: await new Promise<number>((resume) => " +
      "void part.ports.clock.after(100, () => resume(part.log.position))),",
  ),
  "a router keeps what is not settled": {
    breaks: "Q2",
    violates: ["I31"],
    patches: [
      {
        file: "src/users/router/lookups/cached-routes.ts",
        find: "if (!entry.settled || this.#floors.isBelow(id, entry)) return false;",
        put: "if (this.#floors.isBelow(id, entry)) return false;",
      },
      {
        file: "src/users/router/lookups/cached-routes.ts",
        find: "if (!entry.settled) return false;\n    const ageMs",
        put: "const ageMs",
      },
    ],
  },
  "an incomplete log is reported as if it were complete": one(
    "Q3",
    ["I31"],
    "src/coordinator/kernel/shard/shard-log.ts",
    "return this.#rowsAfter(position, Math.max(this.#resetPosition, oldest), limit, (slot, end) =>",
    "return this.#rowsAfter(Math.max(position, oldest), 0, limit, (slot, end) =>",
  ),
  "an answer counts its age from its arrival": one(
    "Q4",
    ["I31"],
    "src/users/router/lookups/cached-routes.ts",
    "? { ...read, sinceMs: sentMs - ageMs }",
    "? { ...read, sinceMs: nowMs - ageMs }",
  ),
  "the shared cache starts an age again": one(
    "Q4",
    ["I31"],
    "src/users/router/lookups/shared-cache.ts",
    "const sinceMs = sentMs - storedAgeMs - ageMs;",
    "const sinceMs = sentMs - ageMs;",
  ),
  "the time in the shared cache does not count": one(
    "Q4",
    ["I31"],
    "src/users/router/lookups/shared-cache.ts",
    "const sinceMs = sentMs - storedAgeMs - ageMs;",
    "const sinceMs = sentMs - storedAgeMs;",
  ),
  "the age of a report does not count": one(
    "Q4",
    ["I31"],
    "src/users/router/lookups/shard-reports.ts",
    "coverage.freshMs = sentMs - page.ageMs;",
    "coverage.freshMs = sentMs;",
  ),
  "a router does not notice that its clock was set back": one(
    "Q4",
    ["I31"],
    "src/users/router/lookups/cached-routes.ts",
    "if (nowMs < this.#lastMs) {",
    "if (nowMs < 0) {",
  ),
  "entries are used whatever the reports list": one(
    "Q5",
    ["I31"],
    "src/users/router/lookups/shard-reports.ts",
    "(coverage.heldAt.get(entry.key) ?? -1) <= entry.position",
    "coverage.heldAt.size >= 0",
  ),
  "reports prove answers from before they began": one(
    "Q5",
    ["I31"],
    "src/users/router/lookups/shard-reports.ts",
    "coverage.start <= entry.position &&",
    "",
  ),
  "a full page counts as the newest one": one(
    "Q5",
    ["I31"],
    "src/users/router/lookups/shard-reports.ts",
    "if (!page.hasMore) {\n      coverage.freshMs",
    "if (page.kind === 'page') {\n      coverage.freshMs",
  ),
  "a router goes on behind a gap in the reports": one(
    "Q5",
    ["I31"],
    "src/users/router/lookups/shard-reports.ts",
    "this.#restart(coverage);\n        if (fault !== undefined) {",
    "const { start } = coverage;\n        this.#restart(coverage);\n" +
      "        this.#apply(coverage, await source.report(shard, undefined), sentMs);\n" +
      "        coverage.start = start;\n        if (fault !== undefined) {",
  ),
  "a report proves entries for as long as they live": one(
    "Q5",
    ["I31"],
    "src/users/router/lookups/shard-reports.ts",
    "nowMs - coverage.freshMs <= this.#options.boundMs &&",
    "nowMs - coverage.freshMs <= this.#options.reportedMaxAgeMs &&",
  ),
  "a router shows older answers than it has shown": one(
    "Q6",
    ["I32"],
    "src/users/router/lookups/floors.ts",
    "const isOlder = entry.position < this.position(entry) || this.#isOlderEpoch(name, entry);",
    "const isOlder = false;",
  ),
  "a floor that is forgotten holds no more": one(
    "Q6",
    ["I32"],
    "src/users/router/lookups/floors.ts",
    "this.#forgotten.set(shard, Math.max(position, this.#forgotten.get(shard) ?? 0));",
    "",
  ),
  "a negative answer lives like a positive one": one(
    "Q7",
    ["I31"],
    "src/users/router/lookups/cached-routes.ts",
    'entry.kind === "none" ? Math.min(negativeMaxAgeMs, this.#plainMaxAgeMs) : this.#plainMaxAgeMs;',
    "this.#plainMaxAgeMs;",
  ),
  "a negative answer is used in an outage": one(
    "Q7",
    ["I31"],
    "src/users/router/lookups/cached-routes.ts",
    'each.kind === "found" &&',
    "",
  ),
  "an outage has no grace period": one(
    "Q8",
    ["I31"],
    "src/users/router/lookups/cached-routes.ts",
    "return nowMs - sinceMs <= this.#options.graceMs;",
    "return nowMs >= sinceMs;",
  ),
  "stale answers are not marked": one(
    "Q8",
    ["I31"],
    "src/users/router/lookups/cached-routes.ts",
    'entry === lookup.spare ? "shared_cache" : "memory", true)',
    'entry === lookup.spare ? "shared_cache" : "memory", false)',
  ),
  "a router ignores the position that a client carries": one(
    "Q9",
    ["I31"],
    "src/users/router/lookups/cached-routes.ts",
    "return entry.position >= (min.get(entry.shard) ?? 0) && !this.#floors.isBelow(id, entry);",
    "return min !== undefined && !this.#floors.isBelow(id, entry);",
  ),
  "a call takes the answer to an older question": one(
    "Q9",
    ["I31"],
    "src/users/router/lookups/cached-routes.ts",
    "(!isOwn || isFromCache) && !this.#isFresh(asked, this.#now())",
    "false",
  ),
  // Who a hold belongs to
  "decisions ignore the attempt": one(
    "C2",
    ["I2", "I4", "I5", "I35", "I44"],
    "src/coordinator/kernel/shard/end-holds.ts",
    "    hold.counter === counter &&\n",
    "",
  ),
  "attempts start over with each instance": one(
    "B3",
    ["I8"],
    "src/coordinator/kernel/ledger/begins.ts",
    "counter: ++this.#attempts,",
    "counter: ++this.#attempts, ...{ incarnation: 1 },",
  ),
  "a create takes a claimed name": one(
    "B4",
    ["I3"],
    "src/coordinator/kernel/shard/prepare.ts",
    "return claim === undefined ?",
    "return claim?.cell !== cell ?",
  ),
  "a foreign claim can be destroyed": one(
    "B4",
    ["I3"],
    "src/coordinator/kernel/shard/prepare.ts",
    "claim.cell !== cell && hold?.kind",
    "claim.cell === null && hold?.kind",
  ),
  "epochs do not grow": one(
    "E1",
    ["I2"],
    "src/coordinator/kernel/shard/shard-log.ts",
    "    this.#position += 1;\n    return this.#position;",
    "    this.#position += 1;\n    return 1;",
  ),
  // Holds in the log
  "a carried entry is not written": one(
    "H10",
    ["I57"],
    "src/coordinator/kernel/shard/shard-log.ts",
    "const holds = textOf(entries.map((each) => each.text));",
    "const holds = textOf(made.map((each) => each.text));",
  ),
  "a start ignores what has ended": one(
    "H10",
    ["I57"],
    "src/coordinator/kernel/shard/shard-log.ts",
    "ends: itemsOf<StoredEnd>(row?.ended ?? null),",
    "ends: [],",
  ),
  "a row with an entry in use is replaced": one(
    "H10",
    ["I57"],
    "src/coordinator/kernel/shard/shard-log.ts",
    "if (back <= most ||",
    "if (back >= 0 ||",
  ),
  "a start does not read an entry of which a part has ended": one(
    "H10",
    ["I57"],
    "src/coordinator/kernel/shard/held-names.ts",
    "if (entry.left === 0) this.#drop(entry);",
    "this.#drop(entry);",
  ),
  "the end of a part ends the whole entry": one(
    "H10",
    ["I57"],
    "src/coordinator/kernel/shard/held-names.ts",
    "[left === 0 ? [since, part] : [since, part, names]]",
    "[[since, part, ...(names.length > 9 ? [names] : [])] as StoredEnd]",
  ),
  "an entry is carried with names that have ended": one(
    "H10",
    ["I57"],
    "src/coordinator/kernel/shard/held-names.ts",
    "return withNames(this.#storedOf(entry), (name) => this.#byName.get(name) === entry);",
    "return [this.#storedOf(entry)];",
  ),
  "only the first entry of a transaction is written": one(
    "B4",
    ["I57"],
    "src/coordinator/kernel/shard/shard-log.ts",
    "for (const entry of made)\n",
    "for (const entry of made.slice(0, 1))\n",
  ),
  "a start reads what is older than a carried copy": one(
    "H10",
    ["I57"],
    "src/coordinator/kernel/shard/held-names.ts",
    "if (isDone.has(id)) continue;\n      isDone.add(id);",
    "if (isDone.has(id)) continue;",
  ),
  "a start finds what a part of an entry has ended": one(
    "H10",
    ["I57"],
    "src/coordinator/kernel/shard/held-names.ts",
    "const ended = endedNames.get(id);",
    "const ended = endedNames.get('');",
  ),
  "a restart assigns epochs again": one(
    "E1",
    ["I2", "I24"],
    "src/coordinator/kernel/shard/shard-log.ts",
    "this.#position = this.#logged;\n    this.held",
    "this.#position = 0;\n    this.held",
  ),
  "a late thaw is carried out": one(
    "A2",
    ["I17"],
    "src/coordinator/capabilities/cells/ledger.ts",
    'message.stateVersion === part.store.number("cell_state_version")',
    "message.stateVersion >= 0",
  ),
  // Going back in time
  "positions alone tell how far a part has got": one(
    "H1",
    ["I24"],
    "src/coordinator/kernel/instances.ts",
    "if (incarnation === newest.incarnation) return",
    "return",
  ),
  "a part tells points that are not durable": one(
    "H2",
    ["I24"],
    "src/coordinator/kernel/ledger/part.ts",
    "() => instances.raise(),",
    "() => (instances.raise(), instances.madeDurable(positions.last)),",
  ),
  "an inquiry does not say what the shard has seen": one(
    "H2",
    ["I24", "I55"],
    "src/coordinator/kernel/shard/inquirer.ts",
    "const seen = this.#part.log.sightings.current.of(cell);",
    "const seen = undefined;",
  ),
  "the cron does not tell the shards what ledgers have seen": one(
    "H2",
    ["I24"],
    "src/coordinator/cron/cron.ts",
    "objects: objectsOf(env, configOf(env), [new KnownFormat(runtime.speaks), placement, witness]),",
    "objects: objectsOf(env, configOf(env), [new KnownFormat(runtime.speaks), placement]),",
  ),
  "the Worker does not tell what it has seen": one(
    "H2",
    ["I24"],
    "src/coordinator/capabilities/loss/edge/witness.ts",
    "...(seen === undefined ? {} : { seen }),",
    "",
  ),
  "a ledger ignores what the Worker has seen of shards": one(
    "H2",
    ["I24"],
    "src/coordinator/capabilities/loss/index.ts",
    "shards.learn(message.shards);",
    "shards.learn({});",
  ),
  "the cron does not tell ledgers what D1 has seen of them": one(
    "H2",
    ["I24"],
    "src/coordinator/capabilities/projection/edge/pull.ts",
    "...(seen === null ? {} : { seen }),",
    "",
  ),
  "D1 stores no point of a ledger": one(
    "H3",
    ["I24"],
    "src/coordinator/capabilities/projection/edge/pull.ts",
    "const isNews = point !== null && !isSamePoint(this.#seen, point);",
    "const isNews = false;",
  ),
  "a revoked key takes no position": one(
    "H1",
    ["I24"],
    "src/coordinator/capabilities/keys/ledger.ts",
    "part.store.takePosition(part.positions, part.ports.clock.now());",
    "",
  ),
  "a shard stores no point of a ledger that answered an inquiry": one(
    "H3",
    ["I24"],
    "src/coordinator/kernel/shard/inquirer.ts",
    "if (answer !== undefined && !sightings.current.note(",
    "if (answer === undefined && !sightings.current.note(",
  ),
  "a shard stores no point of a ledger": one(
    "H3",
    ["I24"],
    "src/coordinator/capabilities/loss/ledger-points.ts",
    "if (next !== undefined && next !== known) this.#noted.set(cell, next);",
    "",
  ),
  "a restart forgets the points of shards": one(
    "H3",
    ["I24"],
    "src/coordinator/capabilities/loss/seen-shards.ts",
    "new Map(storedPoints(part.ports.sql, part.store.applied));",
    "new Map();",
  ),
  "decisions count as applied without the points of their shards": one(
    "H3",
    ["I24"],
    "src/coordinator/capabilities/loss/seen-shards.ts",
    "[...this.#points].map(",
    "[...new Map<number, HistoryPoint>()].map(",
  ),
  "a new instance of the directory raises no incarnation": one(
    "H1",
    ["I26"],
    "src/coordinator/kernel/directory/part.ts",
    "if (store.storePosition()) instances.raise();",
    "if (store.storePosition() && instances.incarnation === 0) instances.raise();",
  ),
  "the directory is not told what D1 has seen of it": one(
    "H2",
    ["I26"],
    "src/coordinator/capabilities/loss/edge/directory-watch.ts",
    "call({ ...this.#run.envelope, ...(seen === undefined ? {} : { seen }) }),",
    "call(this.#run.envelope),",
  ),
  "the directory is not told what ledgers have seen of it": one(
    "H2",
    ["I26"],
    "src/coordinator/capabilities/loss/edge/directory-watch.ts",
    "if (!this.#isIntact || points.length === 0) return ok(null);",
    "if (points.length >= 0) return ok(null);",
  ),
  "D1 gets keys without the point of the directory that has them": one(
    "H3",
    ["I26"],
    "src/coordinator/capabilities/loss/edge/directory-watch.ts",
    "isSamePoint(seen, point) || (await this.#remember(seen, point));",
    'isSamePoint(seen, point) || "keys" in asked.value || (await this.#remember(seen, point));',
  ),
  "a ledger does not store what it has seen of the directory": one(
    "H3",
    ["I26"],
    "src/coordinator/capabilities/loss/seen-directory.ts",
    "return this.#point === undefined || isSamePoint(this.#stored, this.#point);",
    "return true;",
  ),
  "a ledger replaces the point of the directory without its confirmation": one(
    "H5",
    ["I26"],
    "src/coordinator/capabilities/loss/seen-directory.ts",
    "nextPoint(this.#point, point, confirmed)",
    "nextPoint(undefined, point, confirmed)",
  ),
  "an accepted loss leaves the identities": one(
    "A4",
    ["I39"],
    "src/coordinator/capabilities/identities/index.ts",
    "setIdentities(part, noIdentities),",
    "null,",
  ),
  "a change of the identities ignores what its operator has read": one(
    "A4",
    ["I39"],
    "src/coordinator/capabilities/identities/directory.ts",
    'if (position !== before.position) return changedMeanwhile("the identities");',
    "",
  ),
  "a reconciled directory gets no revocations back": one(
    "H8",
    ["I26"],
    "src/coordinator/capabilities/keys/directory.ts",
    "for (const { keyId, revokedAtMs } of revocations) {",
    "for (const { keyId, revokedAtMs } of revocations.slice(0, 0)) {",
  ),
  "a restart forgets that the history is lost": one(
    "H4",
    ["I24", "I25"],
    "src/coordinator/capabilities/loss/history.ts",
    'typeof stored === "string" ? (JSON.parse(stored) as StoredLoss) : undefined',
    "undefined",
  ),
  "a new instance of a ledger makes shards forget the point of another": one(
    "H5",
    ["I24"],
    "src/coordinator/kernel/instances.ts",
    "return hasKnown && point !== null ? point : undefined;",
    "return point ?? undefined;",
  ),
  "a shard carries out a message of a new instance, and keeps the point of the last one": one(
    "H5",
    ["I24", "I55"],
    "src/coordinator/capabilities/loss/ledger-points.ts",
    "return next !== undefined || known === undefined;",
    "return true;",
  ),
  "a key whose revocation is forgotten is let in": one(
    "A1",
    ["I17"],
    "src/coordinator/capabilities/keys/ledger.ts",
    "if (!this.isForgotten(caller)) return undefined;",
    "if (caller.expiresAtMs > 0) return undefined;",
  ),
  "a ledger does not compare what its cell has seen": one(
    "L7",
    ["I24"],
    "src/coordinator/kernel/ledger/ledger.ts",
    "standing.current.admit(message.seen, noticedBy)",
    "standing.current.admit(noticedBy.startsWith('cell ') ? null : message.seen, noticedBy)",
  ),
  "answers to a cell have no point": one(
    "L7",
    ["I24"],
    "src/coordinator/capabilities/loss/index.ts",
    "({ ...tell(part), shards: shards.takeNews() })",
    "({ shards: shards.takeNews() })",
  ),
  "a cell forgets what its ledger has not confirmed": one(
    "L7",
    ["I24"],
    "src/users/client/ledger-history.ts",
    "if (sent !== undefined && sent.incarnation < point.incarnation) {",
    "if (sent !== undefined && sent.incarnation < point.incarnation) { this.#points.clear();",
  ),
  "a shard carries out what waited while it noticed its loss": one(
    "H4",
    ["I24"],
    "src/coordinator/kernel/shard/shard.ts",
    "weight: weightOf(each, weigh),",
    "evenIfStopped: true, weight: weightOf(each, weigh),",
  ),
  "a ledger makes a decision that waited while it noticed its loss": one(
    "H4",
    ["I24"],
    "src/coordinator/kernel/ledger/decisions.ts",
    "return result; });",
    "return result; }, { evenIfStopped: true });",
  ),
  "a shard clears holds after it noticed its loss": one(
    "H4",
    ["I24"],
    "src/coordinator/kernel/shard/inquirer.ts",
    "weight: chunk.reduce(",
    "evenIfStopped: true, weight: chunk.reduce(",
  ),
  "a ledger renews a lease after it noticed its loss": one(
    "H4",
    ["I24"],
    "src/coordinator/capabilities/renewals/ledger.ts",
    '.submit("renew", () => this.#write(request));',
    '.submit("renew", () => this.#write(request), { evenIfStopped: true });',
  ),
  // Durability
  "no write waits for the disk": one(
    "B5",
    ["I4", "I6", "I7", "I8", "I9", "I17"],
    "src/coordinator/kernel/group-commit.ts",
    "        await this.#ports.sql.flush();\n",
    "",
  ),
  "decisions leave before their row is durable": one(
    "C2",
    ["I7"],
    "src/coordinator/kernel/ledger/decisions.ts",
    "    this.#part.deliveries.track(decided, within !== undefined);\n",
    "    this.#part.deliveries.track(decided, within !== undefined);\n" +
      "    void this.#part.deliveries.deliver(request.lease);\n",
  ),
  "a verdict does not wait for the disk": one(
    "B8",
    ["I9"],
    "src/coordinator/kernel/ledger/ledger.ts",
    "await part.ports.sql.flush(); return ok({ verdicts,",
    "return ok({ verdicts,",
  ),
  "a failed write counts as a refusal": {
    breaks: "B5",
    violates: ["I7", "I18"],
    patches: [
      {
        file: "src/coordinator/kernel/group-commit.ts",
        find: "        this.#ports.halt(error);\n        return;\n",
        put: "        continue;\n",
      },
      {
        file: "src/coordinator/kernel/ledger/begins.ts",
        find: '.submit("grant", () => this.#grant(running, attemptId, end));',
        put:
          '.submit("grant", () => this.#grant(running, attemptId, ' +
          "end)).catch(() => (void attempt.release(), rolledBack()));",
      },
    ],
  },
  // Inquiries
  "inquiries ignore running begins": one(
    "B8",
    ["I4", "I9"],
    "src/coordinator/kernel/ledger/inquiry.ts",
    '? "running" : "gone"',
    '? "gone" : "gone"',
  ),
  "a verdict is about the lease, not the execution": one(
    "B8",
    ["I5", "I9", "I44"],
    "src/coordinator/kernel/ledger/inquiry.ts",
    "if (!isGrantedBy(row, question.grantedBy ?? shard, question) || store.isApplied(row))",
    "if (row.epochs === null || store.isApplied(row))",
  ),
  "a decision is called gone before it is known to be applied": one(
    "S2",
    ["I5", "I9"],
    "src/coordinator/kernel/ledger/inquiry.ts",
    "|| store.isApplied(row))",
    "|| row.decided === 1)",
  ),
  "a missing answer counts as gone": one(
    "M2",
    ["I4", "I5"],
    "src/coordinator/kernel/shard/inquirer.ts",
    '=> verdict === "committed" ||',
    '=> verdict === "unknown" ? "gone" : verdict === "committed" ||',
  ),
  "a rolled back hold is applied": one(
    "B8",
    ["I5"],
    "src/coordinator/kernel/shard/inquirer.ts",
    "ended.push({ hold, as });",
    'ended.push({ hold, as: as === "rolled_back" ? "committed" : as });',
  ),
  "old holds are never swept": one(
    "B8",
    ["I11"],
    "src/coordinator/kernel/shard/sweeper.ts",
    "if (this.#hasHolds || this.#isWorkDue(now)) this.#alarm.setBy(now + this.#part.limits.sweepAfterMs);",
    "",
  ),
  // Decisions
  "the last decision wins": one(
    "C1",
    ["I6", "I7"],
    "src/coordinator/kernel/ledger/decisions.ts",
    'if (row.state !== "GRANTED") return',
    "if (row.state === request.outcome) return",
  ),
  "a shard that does not answer counts as done": one(
    "C3",
    ["I5"],
    "src/coordinator/kernel/ledger/deliveries.ts",
    'if (answer.kind === "ok") remaining.delete(key);',
    "remaining.delete(key);",
  ),
  "a decision waits for a begin without end": one(
    "N1",
    ["I5", "I11"],
    "src/coordinator/kernel/ledger/shard-link.ts",
    "const cancel = this.#clock.after(waitMs, resolve);",
    "const cancel = () => {};",
  ),
  "a decision that waits for a begin counts as applied": one(
    "N1",
    ["I5", "I11"],
    "src/coordinator/kernel/ledger/shard-link.ts",
    "this.#decisions.push({ item: decision, ops, placement, resolve, signal, traces });",
    "this.#decisions.push({ item: decision, ops, placement, resolve, signal, traces });" +
      'if (signal === undefined && this.#meanGapMs < RIDE_GAP_MS) resolve({ kind: "ok", value: null });',
  ),
  "an open decision is not noted as pending": one(
    "S2",
    ["I5", "I9", "I11"],
    "src/coordinator/kernel/ledger/deliveries.ts",
    "...open.map((each) => each.created_position),",
    "",
  ),
  "a granted lease is not noted as pending": one(
    "S2",
    ["I5"],
    "src/coordinator/kernel/ledger/store.ts",
    "AND (decided = 0 OR (decided = 1 AND epochs IS NOT NULL AND position <= ?))",
    "AND (decided = 3 OR (decided = 1 AND epochs IS NOT NULL AND position <= ?))",
  ),
  "a decision ends that its lease is pending": one(
    "S2",
    ["I5", "I9", "I11"],
    "src/coordinator/kernel/ledger/store.ts",
    "reason = ?, payload = NULL",
    "reason = ?, payload = NULL, pending = 0",
  ),
  "a start finds only decisions that are pending": one(
    "C3",
    ["I5", "I9", "I11"],
    "src/coordinator/kernel/ledger/store.ts",
    "limit - pending.length, ); return [...pending, ...newer];",
    "limit - pending.length, ); return newer.length === 0 ? pending : [...pending];",
  ),
  "a start finds only decisions that are not pending": one(
    "C3",
    ["I5", "I9", "I11"],
    "src/coordinator/kernel/ledger/store.ts",
    "const pending = this.#pending<UnappliedRow>(UNAPPLIED, 1, afterPosition, limit);",
    "const pending: UnappliedRow[] = [];",
  ),
  "a restart lists no leases that are not pending": one(
    "R1",
    ["I13", "I14"],
    "src/coordinator/kernel/ledger/store.ts",
    "return [...pending, ...read(0, Math.max(after, this.through), limit - pending.length)];",
    "return pending;",
  ),
  "the last position of a start is that of a grant": one(
    "M4",
    ["I6", "I11", "I12", "I24"],
    "src/coordinator/kernel/ledger/store.ts",
    "UNION ALL SELECT position, coalesce(decided_at_ms, created_at_ms) FROM lease",
    "UNION ALL SELECT created_position, created_at_ms FROM lease",
  ),
  "a new lease takes the row of an outcome that is too young": one(
    "S1",
    ["I6"],
    "src/coordinator/kernel/ledger/old-outcomes.ts",
    "this.page(1, this.#from, READ_ROWS, this.#part.limits.outcomeRetentionS);",
    "this.page(1, this.#from, READ_ROWS, 0);",
  ),
  "outcomes are forgotten that are pending": {
    breaks: "S1",
    violates: ["I5", "I6"],
    patches: [
      {
        file: "src/coordinator/kernel/ledger/old-outcomes.ts",
        find: "(kind === 2 || pending === 0)",
        put: "true",
      },
      {
        file: "src/coordinator/kernel/ledger/store.ts",
        find: "AND (decided = 2 OR (decided = 1 AND pending = 0))",
        put: "AND decided > 0",
      },
    ],
  },
  "outcomes are forgotten that were not examined": one(
    "S1",
    ["I5", "I6"],
    "src/coordinator/kernel/ledger/store.ts",
    "afterPosition, this.through, limit, );",
    "afterPosition, Number.MAX_SAFE_INTEGER, limit, );",
  ),
  "a shard finds no holds that have moved to it": one(
    "G6",
    ["I5", "I11"],
    "src/coordinator/kernel/shard/store.ts",
    "this.#log.held.ofExecution({ epoch, granted_by: grantedBy ?? null })",
    "this.#log.held.ofExecution({ epoch, granted_by: null })",
  ),
  "a fence is not written": one(
    "C7",
    ["I10", "I16"],
    "src/coordinator/kernel/ledger/decisions.ts",
    "    this.#part.store.insert(row);\n    if (isCounted)",
    "    if (isCounted)",
  ),
  "a decision counts as applied before all shards have confirmed it": one(
    "S2",
    ["I5"],
    "src/coordinator/kernel/ledger/deliveries.ts",
    "if (remaining.size > 0) return this.#postpone(open);",
    "",
  ),
  "a full ledger still begins": one(
    "S3",
    ["I16"],
    "src/coordinator/kernel/ledger/begins.ts",
    "this.neededBytes(bytes) <= ledgerBytes",
    "this.neededBytes(bytes) <= Infinity",
  ),
  "a fence is forgotten while its begin may still arrive": one(
    "C7",
    ["I6", "I10", "I16"],
    "src/coordinator/kernel/ledger/prune.ts",
    "if (kind === 2) return lateBeginS;",
    "if (kind === 2) return 0;",
  ),
  "any message fixes the placement": one(
    "P2",
    ["I16"],
    "src/coordinator/kernel/directory/directory.ts",
    "if (placement === undefined) return refused(",
    `if (placement === undefined)
      void part.commits.submit("add_cell", () => part.store.setPlacement(message.placement));
    if (placement === undefined) return refused(`,
  ),
  "a newcomer passes the queue for slots": one(
    "A3",
    ["I16"],
    "src/coordinator/capabilities/slots/directory.ts",
    "if (ahead >= free) {",
    "if (free === 0) {",
  ),
  "positions follow the clock": one(
    "M4",
    ["I6", "I12"],
    "src/coordinator/kernel/ledger/position.ts",
    "this.#last = Math.max(this.#last + 1, fromClock <= LATEST_FROM_CLOCK ? fromClock : 0);",
    "this.#last = fromClock;",
  ),
  // Begins
  "another batch with the same UUID counts as a replay": one(
    "B2",
    ["I10"],
    "src/coordinator/kernel/ledger/ledger.ts",
    "if (row.payload_hash === request.payloadHash) return undefined;",
    "return undefined;",
  ),
  "retries ask all shards at once": one(
    "B9",
    ["I8"],
    "src/coordinator/kernel/ledger/begins.ts",
    "round === 0 ? await attempt.inParallel",
    "round >= 0 ? await attempt.inParallel",
  ),
  "a freeze does not stop a running begin": one(
    "B5",
    ["I17"],
    "src/coordinator/kernel/ledger/begins.ts",
    "    const refusal = this.grantRefusal(request);\n    if " +
      "(refusal !== undefined) return { ok: false, refusal };\n",
    "",
  ),
  "a frozen cell verifies": one(
    "H9",
    ["I17"],
    "src/coordinator/capabilities/cells/ledger.ts",
    '!(isVerification === true && caller.role === "operator")',
    "isVerification !== true",
  ),
  "a draining cell begins what it likes": one(
    "X1",
    ["I17"],
    "src/coordinator/capabilities/cells/ledger.ts",
    'state === "DRAINING" && isVerification !== true',
    'state === "DRAINING" && isVerification === undefined && state !== "DRAINING"',
  ),
  "the lease limit ignores running begins": one(
    "M6",
    ["I16"],
    "src/coordinator/kernel/ledger/begins.ts",
    "const leases = this.#outstanding + this.#executing.of(this.#part.cell);",
    "const leases = this.#outstanding;",
  ),
  // Reading
  "a lookup shows what is not granted": one(
    "R2",
    ["I15"],
    "src/coordinator/kernel/shard/reader.ts",
    '    case "granted":\n      if (claim',
    '    case "granted":\n    case "running":\n      if (claim',
  ),
  "a listing shows what is not granted": one(
    "R3",
    ["I15"],
    "src/coordinator/capabilities/records/shard.ts",
    "const read = shown(each, verdicts);",
    'const granted = each.hold ? { get: () => "granted" } : verdicts;\n' +
      "    const read = shown(each, granted);",
  ),
  "a lookup shows a claim without asking about its hold": one(
    "R2",
    ["I18"],
    "src/coordinator/kernel/shard/reader.ts",
    "const hold = this.#part.store.holdOn(key.type, key.canonical);",
    "const hold = claim ? undefined : this.#part.store.holdOn(key.type, key.canonical);",
  ),
  "a listing shows a claim without asking about its hold": one(
    "R3",
    ["I18"],
    "src/coordinator/capabilities/records/shard.ts",
    "hold: this.#part.store.holdOn(claim.bucket_type, claim.canonical),",
    "hold: undefined,",
  ),
  "a begin refuses a claim as another cell's without asking about its hold": one(
    "B8",
    ["I18"],
    "src/coordinator/kernel/shard/prepare.ts",
    'claim.cell !== cell && hold?.kind !== "destroy")',
    "claim.cell !== cell)",
  ),
  "a lookup that cannot ask answers not found": one(
    "R2",
    ["I12", "I18", "I31", "I52"],
    "src/coordinator/kernel/shard/reader.ts",
    'return { kind: "unknown" };\n    default:\n      return { kind: "ask", hold, without };',
    'return { kind: "none" };\n    default:\n      return { kind: "ask", hold, without };',
  ),
  "a full page of leases counts as the last": one(
    "R1",
    ["I12"],
    "src/coordinator/capabilities/reads/index.ts",
    "request.limit + 1);",
    "request.limit);",
  ),
  "a page skips the rest of a source id": one(
    "R3",
    ["I12"],
    "src/coordinator/capabilities/records/shard.ts",
    "isLast ? null : { behind: piece.through, scan: null }",
    "isLast ? null : { behind: afterSource(piece.through[0]), scan: null }",
  ),
  "a message lists as many records as it is asked for": {
    breaks: "M7",
    violates: ["I16"],
    patches: [
      {
        file: "src/coordinator/capabilities/records/shard.ts",
        find: "const limit = Math.min(request.limit, recordsIn(this.#part.limits.scanRows));",
        put: "const { limit } = request;",
      },
      {
        file: "src/coordinator/capabilities/records/shard.ts",
        find: "types === null ? limit + 1 : room;",
        put: "limit + 1;",
      },
    ],
  },
  "a digest adds up parts of different moments": one(
    "R4",
    ["I21"],
    "src/coordinator/capabilities/records/digest-records.ts",
    "if (rest !== null && rest.changes !== changes)",
    'if (rest !== null && rest.changes === "")',
  ),
  "decimal ids are ordered as text": one(
    "R3",
    ["I12"],
    "src/common/source-order.ts",
    "`0${pad(digits.length)}${digits}",
    "`0${digits}",
  ),
  "ids beyond the basic plane are ordered by code units": one(
    "R3",
    ["I12", "I21"],
    "src/common/source-order.ts",
    "bytewise(left) - bytewise(right)",
    "left - right",
  ),
  // Machinery
  "an alarm that rang counts as set": one(
    "M3",
    ["I11"],
    "src/coordinator/kernel/alarm-schedule.ts",
    "    this.#atMs = 0;\n",
    "",
  ),
  "alarms are an hour late, so only the cron does the work": {
    breaks: "M3",
    violates: ["I11"],
    patches: [
      {
        file: "src/coordinator/kernel/ledger/deliveries.ts",
        find: "if (next !== Infinity) this.#alarm.setBy(next);",
        put: "this.#alarm.setBy(now + 3_600_000);",
      },
      {
        file: "src/coordinator/kernel/ledger/deliveries.ts",
        find: "this.#alarm.setBy(open.dueAtMs);",
        put: "this.#alarm.setBy(open.dueAtMs + 3_600_000);",
      },
    ],
  },
  "a sweep asks about a hold only once": one(
    "B8",
    ["I11"],
    "src/coordinator/kernel/shard/sweeper.ts",
    "return this.#nextDueAge(pass.previousMs - heldAtMs) <= pass.atMs - heldAtMs;",
    "return pass.previousMs - heldAtMs < this.#part.limits.sweepAfterMs && " +
      "pass.atMs - heldAtMs >= this.#part.limits.sweepAfterMs;",
  ),
  // The projection
  "a ledger does not tell the projection of its decisions": one(
    "S4",
    ["I13"],
    "src/coordinator/capabilities/projection/index.ts",
    "position <= through) && !open.has(position),",
    "position <= through) && position === 0,",
  ),
  "a ledger tells the projection that an open lease is decided": one(
    "S4",
    ["I13"],
    "src/coordinator/capabilities/projection/index.ts",
    "const open = new Set(page.map(",
    "const open = new Set(page.slice(1).map(",
  ),
  "the cron does not tell a ledger which leases D1 has": one(
    "S4",
    ["I13"],
    "src/coordinator/capabilities/projection/edge/pull.ts",
    "    ...range,\n",
    "    ...range,\n    has: [],\n",
  ),
  "the projection counts no creates": one(
    "S4",
    ["I13"],
    "src/coordinator/capabilities/projection/edge/pull.ts",
    "createdAtMs, creates, destroys, replaces, missing];",
    "createdAtMs, 0, destroys, replaces, missing];",
  ),
  // The cell
  "a stale lease is rolled back without a fence": one(
    "C5",
    ["I5"],
    "src/users/cell/reconcile.ts",
    "await this.#fenceAndRollBack(uuid)",
    "await this.#rollBack(uuid)",
  ),
  "a fence is removed while a transaction may still save its lease": one(
    "L5",
    ["I5"],
    "src/users/cell/reconcile.ts",
    "removeFences(run.options.fenceMs)",
    "removeFences(0)",
  ),
  "a local commit without an answer counts as a failure": one(
    "C5",
    ["I5"],
    "src/users/cell/leased-transaction.ts",
    "throw new LocalCommitUnknownError(result.error, this.#uuid);",
    "await this.#cleanUp(); throw result.error;",
  ),
  "a lease is rolled back in the background although its rows may be saved": one(
    "L2",
    ["I5"],
    "src/users/cell/leased-transaction.ts",
    "throw new LocalCommitUnknownError(result.error, this.#uuid);",
    "this.#ports.inBackground((givesUp) => this.#rollBack(givesUp)); throw result.error;",
  ),
  // Verification
  "verification changes recent rows": one(
    "V1",
    ["I20", "I21"],
    "src/users/cell/verification/compare.ts",
    "ageMs !== undefined && ageMs < recentMs;",
    "ageMs !== undefined && ageMs > Infinity && ageMs < recentMs;",
  ),
  "verification changes recent claims": one(
    "V1",
    ["I20"],
    "src/users/cell/verification/compare.ts",
    "asOfMs - Date.parse(updatedAt) < recentMs;",
    "asOfMs - Date.parse(updatedAt) < -recentMs;",
  ),
  "verification trusts the digest of a held range": one(
    "V4",
    ["I21"],
    "src/users/cell/verification/compare-digests.ts",
    "if (needsRecords || digest === undefined || digest.held) return false;",
    "if (needsRecords || digest === undefined) return false;",
  ),
  "verification gives names up before it takes them": one(
    "V3",
    ["I5", "I19"],
    "src/users/cell/verification/decide.ts",
    "const todo = apply ? " +
      "drifts.filter((drift) => (pass === " +
      '"release") === (drift.action === ' +
      '"destroy")) : drifts;',
    "const todo = drifts.filter(({ action }) => " +
      'pass === "claim" || action === ' +
      '"destroy").toSorted((a, b) => Number(b.action === ' +
      '"destroy") - Number(a.action === "destroy"));',
  ),
  "a verification saves its count after its changes": one(
    "V5",
    ["I23"],
    "src/users/cell/verification/cursor.ts",
    "await this.#saveChanges(this.#announcedChanges);",
    "",
  ),
  "a run forgets the changes of earlier runs": one(
    "V5",
    ["I23"],
    "src/users/cell/verification/counts.ts",
    "this.#changes = changes;",
    "this.#changes = 0;",
  ),
  "verification does not recheck locked rows": {
    breaks: "V2",
    violates: ["I5", "I19"],
    patches: [
      {
        file: "src/users/cell/verification/repair.ts",
        find:
          "if (hasName(types, locked, record.source, " +
          'keyOfRecord(types, record))) return "changed";\n    return { list: ' +
          '"destroys", body: { bucket: record.bucket, source: ' +
          "record.source, epoch: record.epoch } };",
        put: 'return { list: "destroys", body: { bucket: record.bucket, source: record.source } };',
      },
      {
        file: "src/users/cell/verification/repair.ts",
        find:
          "const want = nameIn(types, locked, " +
          "drift.want.source, " +
          "drift.want.key);\n  if (want === " +
          'undefined) return "changed";',
        put: "const { want } = drift;",
      },
      {
        file: "src/users/cell/verification/repair.ts",
        find:
          "if (rowKey(record.source) !== " +
          "rowKey(want.source) && " +
          "hasName(types, locked, record.source, " +
          'want.key)) return "duplicate";',
        put: "",
      },
      {
        file: "src/users/cell/verification/repair.ts",
        find: "{ ...claim, epoch: record.epoch }",
        put: "claim",
      },
    ],
  },
  "destroys ignore the epoch": one(
    "B10",
    ["I3", "I19"],
    "src/coordinator/kernel/shard/prepare.ts",
    "if (epoch !== undefined && epoch !== claim.epoch) return false;",
    "if (epoch !== undefined && epoch < 0) return false;",
  ),
  "a replace of a name that nobody has is held as a replace": one(
    "B12",
    ["I3", "I4", "I5"],
    "src/coordinator/kernel/shard/prepare.ts",
    "kind: heldAs(op.kind, claim !== undefined)",
    "kind: op.kind",
  ),
  "a replace that names an epoch takes a name that nobody has": one(
    "B12",
    ["I3"],
    "src/coordinator/kernel/shard/prepare.ts",
    'return epoch === undefined ? { kind: "clear" } : { kind: "absent" };',
    'return { kind: "clear" };',
  ),
  "a digest asks nobody about its holds": one(
    "R4",
    ["I21"],
    "src/coordinator/capabilities/records/digest-records.ts",
    "await this.#part.inquirer.inquire(scan.touching, question.traces);",
    "void this.#part.inquirer;",
  ),
  "a digest leaves out what is held": one(
    "R4",
    ["I21"],
    "src/coordinator/capabilities/records/digest-records.ts",
    "held: this.#touched.has(index),",
    "held: false,",
  ),
  // The set of types
  "a begin does not mark its types as in use": one(
    "T2",
    ["I27"],
    "src/coordinator/capabilities/types/edge/types-copy.ts",
    "if (entries.length === 0) return ok(null);",
    "if (entries.length >= 0) return ok(null);",
  ),
  "a type comes into use before D1 has it": one(
    "T2",
    ["I27"],
    "src/coordinator/capabilities/types/edge/types-copy.ts",
    "return declared.declaredAt === 0 ? ok(0) : notCopied;",
    "return ok(declared.position);",
  ),
  "a type comes into use whatever its rule is": one(
    "T2",
    ["I27"],
    "src/coordinator/capabilities/types/directory.ts",
    "own === undefined || !isSameType(entry, own)",
    "own === undefined",
  ),
  "an entry in use can be changed": one(
    "T3",
    ["I28"],
    "src/coordinator/capabilities/types/directory.ts",
    "if (first !== undefined) return refusedEntry(first);",
    "",
  ),
  "a change of the set ignores its position": one(
    "T3",
    ["I28"],
    "src/coordinator/capabilities/types/directory.ts",
    "if (wanted.position !== position)",
    "if (wanted.position < 0)",
  ),
  "an old copy answers for types that are not in use": one(
    "T4",
    ["I30"],
    "src/coordinator/capabilities/types/edge/types-copy.ts",
    "references.every(({ kind, name }) => isInUse(this.#types, kind, name))",
    "references.every(({ kind, name }) => this.#types?.named(kind, name))",
  ),
  "an old copy says that a type is not declared": one(
    "T4",
    ["I29", "I30"],
    "src/coordinator/capabilities/types/edge/types-copy.ts",
    "const read = await this.read();\n    if (!read.ok) return read;\n    const { types,",
    "const read = this.#types ? ok({ types: this.#types }) : await this.read();\n" +
      "    if (!read.ok) return read;\n    const { types,",
  ),
  "a request shares a reading that began before it": one(
    "T4",
    ["I29", "I30"],
    "src/coordinator/capabilities/types/edge/types-copy.ts",
    "await settled(earlier);",
    "return earlier;",
  ),
  "a reconciled directory trusts the marks that are left": one(
    "T6",
    ["I26"],
    "src/coordinator/capabilities/types/index.ts",
    "typesIn(part).entries.map((entry) => ({ ...entry, isInUse: true })),",
    "typesIn(part).entries,",
  ),
  "a reconciled directory does not get its types back": one(
    "T6",
    ["I26"],
    "src/coordinator/capabilities/types/directory.ts",
    "if (types.length > 0) setTypes(part, restored.entries);",
    "",
  ),
};

/**
 * The log of a shard and the pages of its reports are so small in every run that some runs reach their ends.
 */
const SMALL_SIZES: readonly Patch[] = [
  {
    file: "src/coordinator/kernel/shard/shard-log.ts",
    find: "const LOG_ROWS = 16_384;",
    put: "const LOG_ROWS = 8;",
  },
  {
    file: "src/coordinator/capabilities/reports/shard.ts",
    find: "const PAGE_TRANSACTIONS = 256;",
    put: "const PAGE_TRANSACTIONS = 3;",
  },
  {
    file: "src/coordinator/capabilities/reports/shard.ts",
    find: "const PAGE_KEYS = 400;",
    put: "const PAGE_KEYS = 2;",
  },
  {
    file: "src/coordinator/capabilities/transfer/shard.ts",
    find: "const MOVED_ROWS = 250;",
    put: "const MOVED_ROWS = 1;",
  },
  {
    file: "src/coordinator/capabilities/transfer/shard.ts",
    find: "const PAGES_PER_ALARM = 20;",
    put: "const PAGES_PER_ALARM = 1;",
  },
  {
    file: "src/coordinator/capabilities/reports/shard.ts",
    find: "const CHUNK_ROWS = 32;",
    put: "const CHUNK_ROWS = 1;",
  },
  {
    file: "src/coordinator/capabilities/growth/target.ts",
    find: "const WIPE_ROWS = 500;",
    put: "const WIPE_ROWS = 1;",
  },
];

/** Code of the later format adds a table that older code can live with, and one that it cannot (M5). */
const LATER_STEPS: Patch = {
  file: "src/coordinator/kernel/tables.ts",
  find: "this.#steps = steps;",
  put: `this.#steps = speaks === 1 ? steps : [
    ...steps,
    ["CREATE TABLE added (n INTEGER) STRICT"],
    { format: 2, statements: ["CREATE TABLE later (n INTEGER) STRICT"] },
  ];`,
};

/**
 * The changed sources of a bug, by path from the project's root. They make some sizes small and have later
 * steps as well. Throws if the bug is unknown or does not match its file.
 */
export function plantedSources(name?: string): ReadonlyMap<string, string> {
  const bug = name === undefined ? { patches: [] } : bugs[name];
  if (bug === undefined)
    throw new Error(`unknown bug "${name}"; known bugs:\n  ${Object.keys(bugs).join("\n  ")}`);
  const sources = new Map<string, string>();
  for (const patch of SMALL_SIZES) applyTo(sources, "a small size", patch);
  applyTo(sources, "a later step", LATER_STEPS);
  for (const patch of bug.patches) applyTo(sources, `"${name}"`, patch);
  return sources;
}

/** Replaces a piece of a file, or throws if the file does not contain it exactly once. */
export function applyTo(sources: Map<string, string>, what: string, { file, find, put }: Patch): void {
  const path = new URL(file, PROJECT);
  if (!existsSync(path)) throw new Error(`${what} cannot be planted: there is no ${file}`);
  const source = sources.get(file) ?? readFileSync(path, "utf8");
  const pattern = patternOf(find);
  const times = source.split(pattern).length - 1;
  if (times !== 1)
    throw new Error(
      `${what} cannot be planted: ${file} must contain this once, not ${times} times:\n${find}`,
    );
  if (pattern.source === patternOf(put).source)
    throw new Error(`${what} changes nothing in ${file}:\n${find}`);
  sources.set(
    file,
    source.replace(pattern, () => put),
  );
}

/** Why bugs cannot be planted: one message for each that does not match its file. */
export function unplantable(): string[] {
  const messages = Object.keys(bugs).flatMap((name) => {
    try {
      return (plantedSources(name), []);
    } catch (error) {
      return [(error as Error).message];
    }
  });
  // A size that does not match would be named once for each bug.
  return [...new Set(messages)];
}

/** Plants a bug in the modules of this thread. Must run before any module of the protocol is imported. */
export function plant(name?: string): void {
  const sources = new Map(
    [...plantedSources(name)].map(([file, source]) => [new URL(file, PROJECT).href, source]),
  );
  registerHooks({
    load: (url, context, next) => {
      const source = sources.get(url);
      return source === undefined
        ? next(url, context)
        : { format: "module-typescript", source, shortCircuit: true };
    },
  });
}

const patternOf = (find: string): RegExp =>
  new RegExp(find.trim().split(/\s+/).map(RegExp.escape).join("\\s+"));

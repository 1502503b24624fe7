import type { AuditAction } from "../../../../src/coordinator/capabilities/audit/audit.ts";
import type { CellState, LeaseState } from "../../../../src/coordinator/kernel/messages.ts";
import type { Part } from "../part.ts";
import type { Evidence } from "./evidence.ts";

interface Entry {
  id: string;
  action: AuditAction;
  target: string;
}

/** What is known of the audit of one part. */
interface Seen {
  version: number;
  wentBack: number;
  /** The entries that are durable in the part. */
  present: ReadonlyMap<string, Entry>;
  /** The decisions of operators with an entry: `commit_lease <lease>`. */
  readonly decided: Set<string>;
  /** What the last entry about the state of the cell says. Undefined after a loss, until the next change. */
  state: string | undefined;
}

const cellOf = (ledger: string): string => ledger.replace("ledger ", "");

/** The state of the cell after a change. */
const STATES: ReadonlyMap<AuditAction, CellState> = new Map<AuditAction, CellState>([
  ["freeze_cell", "FROZEN"],
  ["drain_cell", "DRAINING"],
  ["undrain_cell", "ACTIVE"],
  ["unfreeze_cell", "ACTIVE"],
  ["start_removal", "REMOVING"],
  ["remove_cell", "REMOVED"],
]);

const ENTRIES = "SELECT id, action, target FROM audit ORDER BY number";
const DECISIONS =
  "SELECT lease, state FROM lease WHERE decided_by = 'operator' AND payload_hash <> 'removal'";
const STATE = "SELECT value FROM meta WHERE name = 'cell_state'";

/**
 * Checks that an operator's change and its audit entry become durable together, and that an object drops an
 * entry only if D1 has it.
 */
export class AuditWatch {
  readonly #evidence: Evidence;
  readonly #parts = new Map<Part<object>, Seen>();
  /** Whether D1 has an entry. */
  isCopied: (id: string) => boolean = () => false;

  constructor(evidence: Evidence) {
    this.#evidence = evidence;
  }

  refresh(): void {
    const { directory, ledgers } = this.#evidence.coordinator;
    for (const part of [directory, ...ledgers.values()]) this.#read(part, part !== directory);
  }

  #read(part: Part<object>, isLedger: boolean): void {
    const { disk } = part;
    const seen = this.#parts.get(part) ?? {
      version: -1,
      wentBack: 0,
      present: new Map<string, Entry>(),
      decided: new Set<string>(),
      state: "ACTIVE",
    };
    if (seen.version === disk.version && seen.wentBack === disk.wentBack) return;
    const hasTable = disk.readDurable("SELECT 1 FROM sqlite_master WHERE name = 'audit'").length > 0;
    if (!hasTable) return;
    const isRestored = seen.wentBack !== disk.wentBack;
    const present = new Map(disk.readDurable<Entry>(ENTRIES).map((entry) => [entry.id, entry]));
    seen.wentBack = disk.wentBack;
    if (isRestored) seen.state = undefined;
    else this.#checkDropped(part.name, seen.present, present);
    for (const [id, entry] of present) if (!seen.present.has(id)) this.#added(part.name, seen, entry);
    this.#parts.set(part, { ...seen, version: disk.version, wentBack: disk.wentBack, present });
    if (isLedger) this.#checkLedger(part, seen);
  }

  #checkDropped(name: string, before: Seen["present"], after: Seen["present"]): void {
    for (const [id, { action, target }] of before) {
      if (after.has(id)) continue;
      this.#evidence.check(
        "I33",
        this.isCopied(id),
        () => `${name} has dropped its entry about ${action} ${target}, which D1 does not have`,
      );
      this.#evidence.see("O2");
    }
  }

  #added(name: string, seen: Seen, { action, target }: Entry): void {
    this.#evidence.see("O1");
    const state = STATES.get(action);
    if (state !== undefined) {
      this.#evidence.check(
        "I33",
        state !== seen.state,
        () => `${name} has an entry, but it was ${state} before`,
      );
      seen.state = state;
    }
    if (action === "commit_lease" || action === "rollback_lease") {
      const decision = `${action} ${target}`;
      // A ledger that has lost a decision, or forgotten a fence, may make it again.
      const isFirst =
        !seen.decided.has(decision) || seen.wentBack > 0 || this.#evidence.wasPruned(cellOf(name), target);
      this.#evidence.check("I33", isFirst, () => `${name} has two entries about ${decision}`);
      seen.decided.add(decision);
    }
  }

  #checkLedger({ name, disk }: Part<object>, seen: Seen): void {
    const [row] = disk.readDurable<{ value: string }>(STATE);
    const state = row?.value ?? "ACTIVE";
    this.#evidence.check(
      "I33",
      (seen.state ?? state) === state,
      () => `the cell of ${name} is ${state}, and its last entry says ${seen.state}`,
    );
    for (const { lease, state: outcome } of disk.readDurable<{ lease: string; state: LeaseState }>(
      DECISIONS,
    )) {
      const decision = `${outcome === "COMMITTED" ? "commit" : "rollback"}_lease ${lease}`;
      this.#evidence.check("I33", seen.decided.has(decision), () => `${name} has no entry about ${decision}`);
    }
  }
}

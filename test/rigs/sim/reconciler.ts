import {
  reconcile,
  ReconcileAborted,
  reconcileDefaults,
  type Finding,
  type LocalLeases,
  type ReconcileOptions,
} from "../../../src/users/cell/reconcile.ts";
import type { RemoteLeases } from "../../../src/users/cell/remote-leases.ts";
import type { Answer as CellAnswer } from "../../../src/users/client/answer.ts";
import { idleMsOf } from "../../../src/coordinator/kernel/ledger/idle-time.ts";
import type { Lease, Outcome } from "../../../src/coordinator/kernel/messages.ts";
import type { Answer } from "../../../src/coordinator/kernel/ports.ts";
import type { Api } from "./api.ts";
import type { Cell } from "./cell.ts";
import type { Judge } from "./judge/judge.ts";
import { cellAnswerOf } from "./lease-ports.ts";
import { LocalFailure } from "./local.ts";
import { Violation } from "./violation.ts";
import type { CellCrash } from "./simulation-settings.ts";

interface ReconcilerContext {
  cell: Cell;
  api: Api;
  judge: Judge;
  mayDie: (where: CellCrash) => Promise<void>;
}

class ListingFailed extends Error {}

/**
 * One reconciliation by the production code, over a cell's database and the simulated network. It may only
 * fail because of a planted fault.
 */
export class Reconciler {
  readonly #context: ReconcilerContext;
  /**
   * Leases about which the coordinator or the database did not answer. Failing to decide them is no
   * violation.
   */
  readonly #excused = new Set<string>();
  #violation: Violation | undefined;
  /** How long each listed lease was neither granted nor renewed, and the least time that makes one stale. */
  readonly #idleMs = new Map<string, number>();
  #staleMs = reconcileDefaults.staleMs;

  constructor(context: ReconcilerContext) {
    this.#context = context;
  }

  async run(options: Partial<ReconcileOptions>): Promise<void> {
    this.#staleMs = options.staleMs ?? reconcileDefaults.staleMs;
    const { cell, judge } = this.#context;
    const ports = {
      local: this.#local(),
      remote: this.#remote(),
      report: (finding: Finding) => this.#report(finding),
      nowMs: () => cell.nowMs,
    };
    try {
      const { counters } = await reconcile(ports, options);
      for (const [name, count] of Object.entries(counters)) if (count > 0) judge.see(`reconciled ${name}`);
    } catch (error) {
      const cause = error instanceof ReconcileAborted ? error.cause : error;
      if (!(cause instanceof ListingFailed || cause instanceof LocalFailure)) throw error;
      judge.see(`reconciled aborted by the ${cause instanceof LocalFailure ? "database" : "coordinator"}`);
    }
    if (this.#violation !== undefined) throw this.#violation;
  }

  #report(finding: Finding): void {
    const { cell, judge } = this.#context;
    const { kind, uuid } = finding;
    if (kind === "failed") {
      if (!this.#excused.has(uuid))
        this.#violation ??= new Violation(
          "M2",
          `cell ${cell.id} cannot ${finding.step} lease ${uuid}: ${finding.error}`,
        );
      return;
    }
    // This case is documented: a cell that does not reconcile within the retention verifies its rows. Here
    // the verification would find them in order.
    if (finding.coordinator === "NOT_FOUND" && judge.wasForgotten(cell.id, uuid))
      return judge.see("forgotten before it was reconciled");
    this.#violation ??= new Violation(
      "I5",
      `cell ${cell.id} saved lease ${uuid}, and the coordinator says ${finding.coordinator}`,
    );
  }

  #local(): LocalLeases {
    const { mayDie, cell, judge } = this.#context;
    return {
      list: async (page) => {
        await mayDie("before_reconcile_rows");
        return cell.local.list(page);
      },
      has: async (uuids) => {
        await mayDie("before_reconcile_has");
        return this.#excusing(uuids, () => cell.local.has(uuids));
      },
      remove: async (uuid) => {
        await mayDie("before_reconcile_remove");
        return this.#excusing([uuid], () => cell.local.remove(uuid));
      },
      fence: async (uuid) => {
        await mayDie("before_reconcile_fence");
        const idleMs = this.#idleMs.get(uuid) ?? 0;
        judge.see("I40");
        // Thrown here, it would count as a failure of the database.
        if (idleMs < this.#staleMs)
          this.#violation ??= new Violation(
            "I40",
            `cell ${cell.id} fences ${uuid}, which was granted or renewed ${idleMs} ms before`,
          );
        const fence = await this.#excusing([uuid], () => cell.local.fence(uuid));
        if (fence === "fenced") judge.see("L5");
        return fence;
      },
      removeFences: async (olderThanMs) => cell.local.removeFences(olderThanMs),
      queueForVerification: async (uuid) => {
        await this.#excusing([uuid], () => cell.local.queueForVerification(uuid));
        judge.see("L6");
      },
    };
  }

  async #excusing<T>(uuids: readonly string[], work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof LocalFailure) for (const uuid of uuids) this.#excused.add(uuid);
      throw error;
    }
  }

  #remote(): RemoteLeases {
    const { cell, api, mayDie } = this.#context;
    return {
      list: async ({ pageToken, pageSize, createdAfterMs = 0 }) => {
        await mayDie("before_reconcile_list");
        const answer = await api.list(cell.id, cell.caller, {
          createdAfterMs,
          afterPosition: Number(pageToken || "0"),
          limit: pageSize,
        });
        if (answer.kind !== "ok") throw new ListingFailed("the leases cannot be listed");
        const { leases, nextPosition } = answer.value;
        for (const { lease, createdAtMs, ageMs, renewedAtMs = 0 } of leases)
          this.#idleMs.set(lease, createdAtMs + ageMs - Math.max(createdAtMs, renewedAtMs));
        return {
          leases: leases.map((lease) => ({
            uuid: lease.lease,
            ageMs: lease.ageMs,
            idleMs: idleMsOf(lease),
          })),
          nextPageToken: nextPosition === 0 ? "" : String(nextPosition),
        };
      },
      get: async (uuid) => {
        await mayDie("before_reconcile_get");
        return this.#stateOf(uuid, await api.get(cell.id, cell.caller, uuid));
      },
      commit: async (uuid) => {
        await mayDie("before_reconcile_commit");
        return this.#decide(uuid, "COMMITTED");
      },
      rollback: async (uuid) => {
        await mayDie("before_reconcile_rollback");
        return this.#decide(uuid, "ROLLED_BACK");
      },
    };
  }

  async #decide(uuid: string, outcome: Outcome): Promise<CellAnswer<Lease["state"]>> {
    const { cell, api, judge } = this.#context;
    const answer = await api.decide(cell.id, cell.caller, uuid, outcome);
    if (answer.kind === "ok") judge.see("L1");
    // A lease that was forgotten in the meantime is fenced, and the limit on fences may be reached.
    if (
      answer.kind === "refused" &&
      answer.refusal.code === "RESOURCE_EXHAUSTED" &&
      judge.wasPruned(cell.id, uuid)
    )
      this.#excused.add(uuid);
    return this.#stateOf(uuid, answer);
  }

  #stateOf(uuid: string, answer: Answer<Lease>): CellAnswer<Lease["state"]> {
    if (answer.kind === "unknown" || (answer.kind === "refused" && answer.refusal.reason === "KEY_REVOKED"))
      this.#excused.add(uuid);
    return cellAnswerOf(answer);
  }
}

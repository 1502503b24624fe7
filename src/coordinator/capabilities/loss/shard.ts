import { ask } from "../../kernel/ask.ts";
import type { AuditTrail } from "../../kernel/audit-trail.ts";
import { fanOut } from "../../kernel/fan-out.ts";
import type { GroupCommit } from "../../kernel/group-commit.ts";
import type { Instances } from "../../kernel/instances.ts";
import { abovePoints, POSITION_MARGIN, TOLD_INCARNATIONS, type History } from "./history.ts";
import type { HookLists } from "../../kernel/half.ts";
import type { ShardHooks } from "../../kernel/shard/hooks.ts";
import type { Limits } from "../../../common/limits.ts";
import type { HistoryPoint, Operator } from "../../kernel/messages.ts";
import type {
  FinishShard,
  Knowledge,
  KnowledgeRequest,
  PartState,
  PartStatus,
  ReconcileShard,
  ShardReconciliation,
} from "./messages.ts";
import type { Peers } from "../../kernel/methods.ts";
import type { Answer, Ports } from "../../kernel/ports.ts";
import { ok, refused, type Refusal, type Result } from "../../kernel/refusal.ts";
import type { RangeHolds } from "../transfer/range-holds.ts";
import type { Residence } from "../../kernel/shard/residence.ts";
import type { ShardLog } from "../../kernel/shard/shard-log.ts";
import type { ShardStore } from "../../kernel/shard/store.ts";
import type { Slot } from "../../kernel/slot.ts";

declare module "../../kernel/audit-trail.ts" {
  interface AuditedActions {
    reconcile_part: true;
    finish_part: true;
  }
}

/** The rows that a search for names reads before other work gets its turn (M7). */
const PAGE_ROWS = 500;

interface Findings {
  seen: HistoryPoint;
  lost: ShardReconciliation["lost"];
  unreachable: string[];
}

interface Needs {
  readonly ports: Pick<Ports, "clock" | "log">;
  readonly limits: Limits;
  readonly store: ShardStore;
  readonly ranges: Pick<RangeHolds, "all" | "precommit">;
  readonly log: ShardLog;
  readonly history: History;
  readonly instances: Instances;
  readonly commits: GroupCommit;
  readonly peers: Pick<Peers, "ledger" | "shard">;
  readonly residence: Slot<Pick<Residence, "newShards" | "lossAccepted">>;
  readonly hooks: Pick<HookLists<ShardHooks>, "incomplete">;
  readonly audit: Slot<AuditTrail>;
  readonly index: number;
}

/** Reconciles a shard that has gone back in time (H6). */
export class ShardReconciler {
  readonly #part: Needs;

  constructor(part: Needs) {
    this.#part = part;
  }

  /**
   * Asks every ledger what it has seen of this shard, then accepts the loss. If the shard is not lost, for
   * example because an earlier call has accepted its loss, nothing is changed, unless the operator declares a
   * loss. Then the shard stops at once, before it asks anybody.
   */
  async reconcile(request: ReconcileShard): Promise<Result<ShardReconciliation>> {
    const isDeclared = await this.#part.history.declare(request);
    if (!this.#part.history.isLost && !isDeclared)
      return ok({ status: this.#part.history.status, lost: [], unreachable: [] });
    const { seen, lost, unreachable } = await this.#askLedgers(request);
    if (!request.dryRun) {
      if (unreachable.length > 0) {
        return refused(
          "UNAVAILABLE",
          `${unreachable.length} ledgers did not say what they have seen of shard ${this.#part.index}, ` +
            `among them those of the cells ${unreachable.slice(0, 10).join(", ")}; the shard still refuses ` +
            "everything, and this call can be repeated",
          { retryAfterMs: 10_000 },
        );
      }
      const early = await this.#refuseWhileComplete(request);
      if (early !== undefined) return { ok: false, refusal: early };
      await this.#accept(seen, request.operator);
    }
    return ok({ status: this.#part.history.status, lost, unreachable });
  }

  async #askLedgers({ placement, cells, seen }: ReconcileShard): Promise<Findings> {
    const message: KnowledgeRequest = {
      placement,
      shard: this.#part.index,
      point: this.#part.instances.point ?? null,
      incarnations: this.#part.instances.list(TOLD_INCARNATIONS),
    };
    const { exchangeTimeoutMs, inquiryTimeoutMs, fanOut: width } = this.#part.limits;
    const answers = await fanOut(
      cells,
      width,
      async (cell): Promise<{ cell: string; answer: Answer<Knowledge> }> => ({
        cell,
        answer: await ask(this.#part.ports.clock, exchangeTimeoutMs + inquiryTimeoutMs, () =>
          this.#part.peers.ledger(cell).knowledge(message),
        ),
      }),
    );
    const own = { incarnation: this.#part.instances.incarnation, position: this.#part.log.position };
    const findings: Findings = {
      // The caller may have seen more than any ledger.
      seen: abovePoints(abovePoints(own, this.#part.history.status.loss?.seen), seen),
      lost: [],
      unreachable: [],
    };
    for (const { cell, answer } of answers) {
      if (answer.kind !== "ok") {
        findings.unreachable.push(cell);
        continue;
      }
      const { seen: seenByLedger, ...leases } = answer.value;
      findings.seen = abovePoints(findings.seen, seenByLedger);
      if (leases.outstanding + leases.decided > 0) findings.lost.push({ cell, ...leases });
    }
    return findings;
  }

  /**
   * Names that this shard has lost may be missing on shards to which it has handed over. So it accepts no
   * loss while one of these is complete, and would give them to anybody (G7).
   */
  async #refuseWhileComplete({ placement }: ReconcileShard): Promise<Refusal | undefined> {
    const { index, limits, ports, peers, residence } = this.#part;
    const answers = await fanOut(residence.current.newShards, limits.fanOut, async (shard) => ({
      part: `shard-${shard}`,
      answer: await ask(ports.clock, limits.exchangeTimeoutMs, () => peers.shard(shard).part({ placement })),
    }));
    const complete: string[] = [];
    for (const { part, answer } of answers) {
      if (answer.kind === "refused") return answer.refusal;
      if (answer.kind === "unknown")
        return refused("UNAVAILABLE", `${part} did not say whether it is complete; repeat this call`, {
          retryAfterMs: 10_000,
        }).refusal;
      if (answer.value.state === "complete") complete.push(part);
    }
    if (complete.length === 0) return undefined;
    return refused(
      "FAILED_PRECONDITION",
      `names that shard ${index} has lost may be missing on ${complete.join(", ")}, which it gives names ` +
        `to; declare each of them lost first (\`leasehold parts reconcile ${complete[0]} ` +
        "--declare-lost`), and repeat this call",
    ).refusal;
  }

  /** Another call may have accepted the loss during the wait (M1). */
  async #accept(seen: HistoryPoint, operator: Operator): Promise<void> {
    const accept = (): Result<(() => void) | undefined> => {
      if (!this.#part.history.isLost) return ok(undefined);
      const before = this.#part.log.position;
      this.#part.log.jumpTo(Math.max(before, seen.position) + POSITION_MARGIN);
      this.#part.log.loseChanges();
      for (const incomplete of this.#part.hooks.incomplete) incomplete(this.#part.ports.clock.now());
      // That a transfer may have been cut is among what was lost (Y6).
      for (const range of this.#part.ranges.all()) this.#part.ranges.precommit(range);
      // It needs no room (O3), because a shard that is lost hands out no entries.
      this.#append(operator, "reconcile_part", "reconciling");
      const durable = this.#part.history.accept(seen, before + 1, true);
      this.#part.residence.current.lossAccepted();
      return ok(durable);
    };
    const accepted = await this.#part.commits.submit("accept_loss", accept, { evenIfStopped: true });
    if (!accepted.ok || accepted.value === undefined) return;
    accepted.value();
    this.#record("history_loss_accepted", operator);
  }

  async finish({ operator, removedCells }: FinishShard): Promise<Result<PartStatus>> {
    if (this.#part.history.isLost) {
      return refused(
        "FAILED_PRECONDITION",
        `shard ${this.#part.index} has not accepted its loss; reconcile it, let every cell verify, then ` +
          "finish",
      );
    }
    const isReconciling = this.#part.history.state === "reconciling";
    const removed = isReconciling ? await this.#ownerAmong(removedCells) : undefined;
    if (removed !== undefined) {
      return refused(
        "FAILED_PRECONDITION",
        `shard ${this.#part.index} has names of cell ${removed} again, which was removed; repeat that ` +
          "removal, then finish",
      );
    }
    const finished = await this.#part.commits.submit("finish_reconciliation", () => {
      if (this.#part.history.state !== "reconciling") return ok(null);
      const full = this.#part.audit.current.refusal;
      if (full !== undefined) return { ok: false, refusal: full } as const;
      for (const incomplete of this.#part.hooks.incomplete) incomplete(this.#part.ports.clock.now());
      this.#append(operator, "finish_part", "complete");
      return ok({ durable: this.#part.history.finish() });
    });
    if (!finished.ok) return finished;
    if (finished.value !== null) {
      finished.value.durable();
      this.#record("history_reconciled", operator);
    }
    return ok(this.#part.history.status);
  }

  /**
   * Returns a cell that has a hold or a claim here: a loss may have brought names of a removed cell back.
   * It gets no new holds. They are looked for before the claims, because a hold may become a claim meanwhile.
   */
  async #ownerAmong(cells: readonly string[]): Promise<string | undefined> {
    if (cells.length === 0) return undefined;
    const asked = new Set(cells);
    const range = this.#part.ranges.all().find(({ cell }) => asked.has(cell));
    if (range !== undefined) return range.cell;
    const holder = cells.find((cell) => this.#part.log.held.countOf(cell) > 0);
    if (holder !== undefined) return holder;
    for (const [index, cell] of cells.entries()) {
      if (this.#part.store.claimsOf(cell, 1).length > 0) return cell;
      if (index % PAGE_ROWS === PAGE_ROWS - 1) await this.#part.ports.clock.turn();
    }
    return undefined;
  }

  #append(operator: Operator, action: "reconcile_part" | "finish_part", state: PartState): void {
    this.#part.audit.current.append(operator, {
      action,
      cell: null,
      target: `shard-${this.#part.index}`,
      before: { state: this.#part.history.state },
      after: { state },
    });
  }

  #record(event: string, { reason }: Operator): void {
    const { point } = this.#part.instances;
    this.#part.ports.log(event, {
      part: `shard ${this.#part.index}`,
      reason: reason ?? "",
      incarnation: point?.incarnation ?? 0,
      position: point?.position ?? 0,
    });
  }
}

import type { Sightings } from "../../kernel/ledger/sightings.ts";
import type { Slot } from "../../kernel/slot.ts";
import { ask } from "../../kernel/ask.ts";
import { fanOut } from "../../kernel/fan-out.ts";
import type { Limits } from "../../../common/limits.ts";
import type { Ports } from "../../kernel/ports.ts";
import { type Op } from "../../kernel/messages.ts";
import { type CheckHolds, type HeldExecution, type ScrubKind, type ScrubStep } from "./messages.ts";
import type { Peers } from "../../kernel/methods.ts";
import { ok, type Refusal, type Result } from "../../kernel/refusal.ts";
import { nothingChecked, type NewFinding, type ScrubCursor, type ScrubProgress } from "./scrub.ts";
import type { TransferRange } from "../transfer/range.ts";
import type { Deliveries } from "../../kernel/ledger/deliveries.ts";
import { decodeExecutions, type Executions } from "../../kernel/ledger/executions.ts";
import { decodePayload } from "../../kernel/ledger/payload.ts";
import type { ShardLinks } from "../../kernel/ledger/shard-links.ts";
import type { LedgerStore } from "../../kernel/ledger/store.ts";
import { decodeRange } from "../transfer/range.ts";
import type { LeaseRow } from "../../kernel/ledger/lease-table.ts";

/** The leases that one step compares with shards, unless their ops are more than `scanRows` before that. */
const STEP_LEASES = 200;

interface MissingHolds {
  destroys: number;
  others: number;
}

/** A granted lease that is compared with the shards. */
interface ComparedLease {
  row: LeaseRow;
  ops: Op[];
  /** What a transfer holds on each shard of its executions, instead of names (Y1). */
  range: TransferRange | undefined;
  executions: Executions;
  /** The number of missing holds by shard, destroys separately. */
  missing: Map<number, MissingHolds>;
  /** Whether a shard has not said what it has. */
  isUnchecked: boolean;
}

/** The part of a lease that one message asks about: some ops, or the scope of a transfer. */
interface AskedPart {
  lease: ComparedLease;
  /** All of them were granted by one shard. */
  grantedBy: number;
  ops: Op[];
}

interface AskMessage {
  shard: number;
  parts: AskedPart[];
  holds: number;
}

interface Needs {
  readonly sightings: Slot<Sightings>;
  readonly cell: string;
  readonly limits: Limits;
  readonly store: LedgerStore;
  readonly deliveries: Deliveries;
  readonly links: ShardLinks;
  readonly peers: Pick<Peers, "shard">;
  readonly ports: Pick<Ports, "clock">;
}

/**
 * Checks the rows of a ledger: each granted lease has its holds on the shards (Z3), and each decision that is
 * not applied everywhere will be delivered (C3).
 */
export class LedgerScrub {
  readonly #part: Needs;

  constructor(part: Needs) {
    this.#part = part;
  }

  async check(cursor: ScrubCursor | null, step: ScrubStep): Promise<Result<ScrubProgress>> {
    const { table, behind } = cursor ?? { table: "leases", behind: [0] };
    const after = Number(behind[0]);
    return table === "decisions" ? this.#checkDecisions(after) : this.#checkLeases(after, step);
  }

  async #checkLeases(after: number, { placement }: ScrubStep): Promise<Result<ScrubProgress>> {
    const rows = this.#part.store.undecided(after, STEP_LEASES);
    const findings: NewFinding[] = [];
    const leases: ComparedLease[] = [];
    let read = 0;
    let ops = 0;
    for (const { lease } of rows) {
      if (ops >= this.#part.limits.scanRows) break;
      read += 1;
      const compared = this.#read(lease);
      if (compared === undefined) findings.push(this.#finding("unreadable_lease", "leases", lease));
      else leases.push(compared);
      ops += compared?.range === undefined ? (compared?.ops.length ?? 0) : compared.executions.size;
    }
    const refusal = await this.#ask(leases, placement);
    if (refusal !== undefined) return { ok: false, refusal };
    const isEnd = read === rows.length && rows.length < STEP_LEASES;
    const last = rows[read - 1];
    return ok({
      ...nothingChecked({ table: "leases", behind: [last?.created_position ?? after] }),
      ...(isEnd ? { next: { table: "decisions", behind: [0] } } : {}),
      rows: read,
      findings: [...findings, ...leases.flatMap((lease) => this.#findingsOf(lease))],
      unchecked: leases.filter(({ isUnchecked }) => isUnchecked).length,
    });
  }

  /** Returns undefined if nobody can read what the lease holds. */
  #read(id: string): ComparedLease | undefined {
    try {
      const row = this.#part.store.findWhole(id);
      if (row === undefined || row.payload === null || row.epochs === null) return undefined;
      return {
        row,
        ops: decodePayload(row.payload),
        range: row.transfer === null ? undefined : decodeRange(row.transfer),
        executions: decodeExecutions(row.epochs),
        missing: new Map(),
        isUnchecked: false,
      };
    } catch {
      return undefined;
    }
  }

  #isReadable(id: string): boolean {
    try {
      decodeExecutions(this.#part.store.find(id)?.epochs ?? "{}");
      return true;
    } catch {
      return false;
    }
  }

  /** Asks each shard which holds of these leases it lacks, with messages about at most `scanRows` of them. */
  async #ask(leases: readonly ComparedLease[], placement: string): Promise<Refusal | undefined> {
    const messages: AskMessage[] = [];
    const open = new Map<number, AskMessage>();
    const add = (shard: number, part: AskedPart): void => {
      const holds = part.lease.range === undefined ? part.ops.length : 1;
      let message = open.get(shard);
      if (message === undefined || message.holds + holds > this.#part.limits.scanRows) {
        message = { shard, parts: [], holds: 0 };
        open.set(shard, message);
        messages.push(message);
      }
      message.parts.push(part);
      message.holds += holds;
    };
    for (const lease of leases) {
      // A range hold stays on the shard that granted it (G10).
      if (lease.range !== undefined)
        for (const shard of lease.executions.keys()) add(shard, { lease, grantedBy: shard, ops: [] });
      const placed = Map.groupBy(lease.ops, (op) => `${op.shard}>${this.#part.links.shardNow(op)}`);
      for (const [first, ...others] of placed.values()) {
        if (first === undefined) continue;
        const ops = [first, ...others];
        const grantedBy = first.shard;
        const shard = this.#part.links.shardNow(first);
        // A shard that held nothing for the lease has only destroys of claims that did not exist.
        if (!lease.executions.has(grantedBy)) {
          note(lease, shard, holdsOf(ops));
          continue;
        }
        for (let from = 0; from < ops.length; from += this.#part.limits.scanRows)
          add(shard, { lease, grantedBy, ops: ops.slice(from, from + this.#part.limits.scanRows) });
      }
    }
    const refusals = await fanOut(messages, this.#part.limits.fanOut, ({ shard, parts }) =>
      this.#askShard(shard, parts, placement),
    );
    return refusals.find((refusal) => refusal !== undefined);
  }

  /** Returns a refusal if the shard has shown that this ledger went back in time (H4). */
  async #askShard(
    shard: number,
    parts: readonly AskedPart[],
    placement: string,
  ): Promise<Refusal | undefined> {
    const message: CheckHolds = {
      placement,
      ...this.#part.sightings.current.of(shard),
      cell: this.#part.cell,
      executions: parts.map(heldExecution),
    };
    const answer = await ask(this.#part.ports.clock, this.#part.limits.exchangeTimeoutMs, () =>
      this.#part.peers.shard(shard).checkHolds(message),
    );
    if (answer.kind !== "ok" || answer.value.isReconciling || answer.value.missing.length !== parts.length) {
      for (const { lease } of parts) lease.isUnchecked = true;
      return undefined;
    }
    const { missing } = answer.value;
    for (const [index, { lease, ops }] of parts.entries()) {
      const absent = new Set(missing[index]);
      const lacks =
        lease.range === undefined
          ? holdsOf(ops.filter((_, at) => absent.has(at)))
          : { destroys: 0, others: absent.size };
      note(lease, shard, lacks);
    }
    return this.#part.sightings.current.compare(shard, { seen: answer.value.seen });
  }

  /**
   * Reads the lease again after the answers. If it is still granted, it was granted when the shards answered,
   * so they must have had its holds (Z3).
   */
  #findingsOf({ row, missing }: ComparedLease): NewFinding[] {
    const now = this.#part.store.find(row.lease);
    const isSame = now?.decided === 0 && now.incarnation === row.incarnation && now.counter === row.counter;
    if (!isSame) return [];
    const destroys = [...missing.values()].reduce((sum, each) => sum + each.destroys, 0);
    // A begin with `allowMissing` holds nothing for a destroy whose claim does not exist.
    const areTooMany = destroys > row.missing;
    return [...missing]
      .map(([shard, each]) => ({ shard, holds: each.others + (areTooMany ? each.destroys : 0) }))
      .filter(({ holds }) => holds > 0)
      .map((each) => ({ ...this.#finding("missing_holds", "leases", row.lease), missing: each }));
  }

  /**
   * Checks in one turn that all decisions which some shard may lack will be delivered, and that each lease
   * that is granted is found by lists.
   */
  #checkDecisions(after: number): Result<ScrubProgress> {
    const limit = this.#part.limits.scanRows;
    const rows = this.#part.store.outcomes(1, after, limit);
    const findings = rows.flatMap((row): NewFinding[] => {
      const { lease, decided, pending } = row;
      if (decided === 0) return pending === 1 ? [] : [this.#finding("unlisted_lease", "decisions", lease)];
      if (decided === 2 || pending === 0) return [];
      if (!this.#part.deliveries.willDeliver(row))
        return [this.#finding("undelivered_decision", "decisions", lease)];
      return this.#isReadable(lease) ? [] : [this.#finding("unreadable_lease", "decisions", lease)];
    });
    const last = rows.at(-1);
    const isEnd = last === undefined || rows.length < limit;
    const next: ScrubCursor | null = isEnd ? null : { table: "decisions", behind: [last.created_position] };
    return ok({ ...nothingChecked(next), rows: rows.length, findings });
  }

  #finding(kind: ScrubKind, table: "leases" | "decisions", lease: string): NewFinding {
    return { kind, table, key: null, cell: this.#part.cell, lease, epoch: null, missing: null };
  }
}

function holdsOf(ops: readonly Op[]): MissingHolds {
  const destroys = ops.filter(({ kind }) => kind === "destroy").length;
  return { destroys, others: ops.length - destroys };
}

function note({ missing }: ComparedLease, shard: number, { destroys, others }: MissingHolds): void {
  if (destroys + others === 0) return;
  const before = missing.get(shard) ?? { destroys: 0, others: 0 };
  missing.set(shard, { destroys: before.destroys + destroys, others: before.others + others });
}

const heldExecution = ({ lease, ops, grantedBy }: AskedPart): HeldExecution => ({
  lease: lease.row.lease,
  incarnation: lease.row.incarnation,
  counter: lease.row.counter,
  epoch: lease.executions.get(grantedBy)?.epoch ?? 0,
  grantedBy,
  keys: ops.map(({ type, canonical }) => ({ type, canonical })),
  ...(lease.range === undefined ? {} : { range: lease.range }),
});

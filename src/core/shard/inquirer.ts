import { ask } from "../ask.ts";
import { fanOut } from "../fan-out.ts";
import type { GroupCommit } from "../group-commit.ts";
import type { Limits } from "../limits.ts";
import {
  MESSAGE_VERSION,
  type BucketKey,
  type HoldState,
  type Inquiry,
  type InquiryAnswer,
  type Reply,
  type Verdict,
} from "../messages.ts";
import type { Ports } from "../ports.ts";
import type { PlacementGuard } from "../placement-guard.ts";
import type { History } from "../history.ts";
import type { ShardLog } from "./shard-log.ts";
import type { ExecutionId, HoldRow } from "./rows.ts";
import type { ShardStore } from "./store.ts";

export interface LedgerPeer {
  inquire(cell: string, message: Inquiry): Promise<Reply<InquiryAnswer>>;
}

/** Clearing scans all holds, so it shares a transaction with little else. */
const CLEAR_WEIGHT = 2_000;

const VERDICT_STATES = {
  granted: "granted",
  running: "running",
  unknown: "unknown",
  committed: "free",
  rolled_back: "free",
  gone: "free",
} as const;

/** Asks the ledgers that own holds about them, and carries out their answers (B8). */
export class Inquirer {
  readonly #shard: number;
  readonly #ports: Ports;
  readonly #limits: Limits;
  readonly #store: ShardStore;
  readonly #log: ShardLog;
  readonly #history: History;
  readonly #placementGuard: PlacementGuard;
  readonly #commits: GroupCommit;
  readonly #ledger: LedgerPeer;

  constructor(
    shard: number,
    ports: Ports,
    limits: Limits,
    store: ShardStore,
    log: ShardLog,
    history: History,
    placementGuard: PlacementGuard,
    commits: GroupCommit,
    ledger: LedgerPeer,
  ) {
    this.#shard = shard;
    this.#ports = ports;
    this.#limits = limits;
    this.#store = store;
    this.#log = log;
    this.#history = history;
    this.#placementGuard = placementGuard;
    this.#commits = commits;
    this.#ledger = ledger;
  }

  async settle(keys: readonly BucketKey[]): Promise<HoldState[]> {
    const holds = keys.map((key) => this.#store.hold(key));
    const verdicts = await this.inquire(holds.filter((hold) => hold !== undefined));
    return holds.map((hold) =>
      hold === undefined ? "free" : VERDICT_STATES[verdicts.get(executionKey(hold)) ?? "unknown"],
    );
  }

  /**
   * Sends one question per execution and one message per ledger. When it resolves, every execution that is
   * over has been durably applied or dropped on this shard, with all of its holds. The result is keyed by
   * `executionKey`.
   */
  async inquire(holds: readonly ExecutionId[]): Promise<Map<string, Verdict>> {
    const executions = new Map(holds.map((hold) => [executionKey(hold), hold]));
    const byCell = Map.groupBy(executions.values(), ({ cell }) => cell);
    const verdicts = new Map<string, Verdict>();
    await fanOut([...byCell], this.#limits.fanOut, async ([cell, asked]) => {
      const answers = await this.#ask(cell, asked);
      for (const [index, hold] of asked.entries())
        verdicts.set(executionKey(hold), answers?.[index] ?? "unknown");
    });
    const over = [...executions.values()].filter((hold) => {
      const verdict = verdicts.get(executionKey(hold));
      return verdict === "committed" || verdict === "rolled_back" || verdict === "gone";
    });
    if (over.length > 0)
      await this.#commits.submit("clear", () => this.#clear(over, verdicts), { weight: CLEAR_WEIGHT });
    return verdicts;
  }

  async #ask(cell: string, asked: readonly ExecutionId[]): Promise<Verdict[] | undefined> {
    const placement = this.#placementGuard.placement;
    // A shard that has lost a part of its history must not change what is left (H4).
    if (placement === undefined || this.#history.lost !== undefined) return undefined;
    const questions = asked.map(({ lease, incarnation, counter, epoch }) => ({
      lease,
      incarnation,
      counter,
      epoch,
    }));
    const seen = this.#log.ledgerPoint(cell);
    const message: Inquiry = {
      version: MESSAGE_VERSION,
      placement,
      ...(seen === undefined ? {} : { seen }),
      shard: this.#shard,
      questions,
    };
    const answer = await ask(this.#ports.clock, this.#limits.inquiryTimeoutMs, () =>
      this.#ledger.inquire(cell, message),
    );
    return answer.kind === "ok" &&
      answer.value.verdicts.length === asked.length &&
      this.#history.lost === undefined
      ? answer.value.verdicts
      : undefined;
  }

  /**
   * Reads the holds again after the wait, and changes only those that still belong to an execution that was
   * asked about (M1).
   */
  #clear(over: readonly ExecutionId[], verdicts: ReadonlyMap<string, Verdict>): void {
    const now = this.#ports.clock.now();
    const executions = new Set(over.map(executionKey));
    for (const hold of this.#store.holdsOf(over.map(({ epoch }) => epoch))) {
      const key = executionKey(hold);
      if (!executions.has(key)) continue;
      if (verdicts.get(key) === "committed") this.#store.apply(hold, now);
      this.#store.deleteHold(hold);
    }
  }
}

/** Returns a key that identifies one execution. It is the same for all holds of the execution. */
export function executionKey({ cell, lease, incarnation, counter, epoch }: ExecutionId | HoldRow): string {
  return `${cell}/${lease}/${incarnation}.${counter}/${epoch}`;
}

import { ask, fanOut } from "../ask.ts";
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
import type { HoldIdentity, HoldRow } from "./rows.ts";
import type { ShardStore } from "./store.ts";

export interface LedgerPeer {
  inquire(cell: string, message: Inquiry): Promise<Reply<InquiryAnswer>>;
}

/** What was learned of one execution. */
export type Learned = Verdict;

/** It scans all holds, so it goes alone or nearly so. */
const CLEAR_WEIGHT = 2_000;

const VERDICT_STATES = {
  granted: "granted",
  running: "running",
  unknown: "unknown",
  committed: "free",
  rolled_back: "free",
  gone: "free",
} as const;

/** Asks the owning ledgers about holds and does what they answer (rule B8). */
export class Inquirer {
  readonly #shard: number;
  readonly #ports: Ports;
  readonly #limits: Limits;
  readonly #store: ShardStore;
  readonly #placementGuard: PlacementGuard;
  readonly #commits: GroupCommit;
  readonly #ledger: LedgerPeer;

  constructor(
    shard: number,
    ports: Ports,
    limits: Limits,
    store: ShardStore,
    placementGuard: PlacementGuard,
    commits: GroupCommit,
    ledger: LedgerPeer,
  ) {
    this.#shard = shard;
    this.#ports = ports;
    this.#limits = limits;
    this.#store = store;
    this.#placementGuard = placementGuard;
    this.#commits = commits;
    this.#ledger = ledger;
  }

  async settle(keys: readonly BucketKey[]): Promise<HoldState[]> {
    const holds = keys.map((key) => this.#store.hold(key));
    const learned = await this.inquire(holds.filter((hold) => hold !== undefined));
    return holds.map((hold) =>
      hold === undefined ? "free" : VERDICT_STATES[learned.get(identityOf(hold)) ?? "unknown"],
    );
  }

  /**
   * One question per execution and one message per ledger. When it resolves, decided and dead executions are durably applied or dropped
   * here, whole. The result is keyed by `identityOf`.
   */
  async inquire(holds: readonly HoldIdentity[]): Promise<Map<string, Learned>> {
    const executions = new Map(holds.map((hold) => [identityOf(hold), hold]));
    const byCell = Map.groupBy(executions.values(), ({ cell }) => cell);
    const learned = new Map<string, Learned>();
    await fanOut([...byCell], this.#limits.fanOut, async ([cell, asked]) => {
      const verdicts = await this.#ask(cell, asked);
      for (const [index, hold] of asked.entries())
        learned.set(identityOf(hold), verdicts?.[index] ?? "unknown");
    });
    const over = [...executions.values()].filter((hold) => {
      const verdict = learned.get(identityOf(hold));
      return verdict === "committed" || verdict === "rolled_back" || verdict === "gone";
    });
    if (over.length > 0) await this.#commits.submit("clear", () => this.#clear(over, learned), CLEAR_WEIGHT);
    return learned;
  }

  async #ask(cell: string, asked: readonly HoldIdentity[]): Promise<Verdict[] | undefined> {
    const placement = this.#placementGuard.placement;
    if (placement === undefined) return undefined;
    const questions = asked.map(({ lease, incarnation, counter, epoch }) => ({
      lease,
      incarnation,
      counter,
      epoch,
    }));
    const message: Inquiry = { version: MESSAGE_VERSION, placement, shard: this.#shard, questions };
    const answer = await ask(this.#ports.clock, this.#limits.inquiryTimeoutMs, () =>
      this.#ledger.inquire(cell, message),
    );
    return answer.kind === "ok" && answer.value.verdicts.length === asked.length
      ? answer.value.verdicts
      : undefined;
  }

  /** Reads the holds again: only what is still an execution that was asked about is touched (rule M1). */
  #clear(over: readonly HoldIdentity[], learned: ReadonlyMap<string, Learned>): void {
    const now = this.#ports.clock.now();
    const executions = new Set(over.map(identityOf));
    for (const hold of this.#store.holdsOf(over.map(({ epoch }) => epoch))) {
      const identity = identityOf(hold);
      if (!executions.has(identity)) continue;
      if (learned.get(identity) === "committed") this.#store.apply(hold, now);
      this.#store.deleteHold(hold);
    }
  }
}

/** Names one execution; equal for all of its holds. */
export function identityOf({ cell, lease, incarnation, counter, epoch }: HoldIdentity | HoldRow): string {
  return `${cell}/${lease}/${incarnation}.${counter}/${epoch}`;
}

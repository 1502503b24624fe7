import { ask } from "../ask.ts";
import { fanOut } from "../fan-out.ts";
import type { GroupCommit } from "../group-commit.ts";
import type { Limits } from "../limits.ts";
import {
  MESSAGE_VERSION,
  type BucketKey,
  type HistoryPoint,
  type HoldState,
  type Inquiry,
  type InquiryAnswer,
  type Reply,
  type Verdict,
} from "../messages.ts";
import type { Ports } from "../ports.ts";
import type { PlacementGuard } from "../placement-guard.ts";
import { CHUNK_ROWS, chunksOf } from "./chunks.ts";
import type { History } from "../history.ts";
import type { ShardLog } from "./shard-log.ts";
import type { ExecutionId, HoldRow } from "./rows.ts";
import type { ShardStore } from "./store.ts";

export interface LedgerPeer {
  inquire(cell: string, message: Inquiry): Promise<Reply<InquiryAnswer>>;
}

const VERDICT_STATES = {
  granted: "granted",
  running: "running",
  unknown: "unknown",
  committed: "free",
  rolled_back: "free",
  gone: "free",
} as const;

/** The point of a ledger that has answered, and the stored one that it has confirmed by its answer (H5). */
interface ToldPoint {
  point: HistoryPoint;
  confirmed: HistoryPoint | null;
}

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
   * Sends one question per execution and one message per ledger. When it resolves, those of the given holds
   * whose executions are over have been durably applied or dropped. Other holds of these executions stay
   * until they are asked about, because finding them would read all holds (M7). The result is keyed by
   * `executionKey`.
   */
  async inquire(asked: readonly HoldRow[]): Promise<Map<string, Verdict>> {
    const executions = new Map(asked.map((hold) => [executionKey(hold), hold]));
    const byCell = Map.groupBy(executions.values(), ({ cell }) => cell);
    const verdicts = new Map<string, Verdict>();
    const told = new Map<string, ToldPoint>();
    await fanOut([...byCell], this.#limits.fanOut, async ([cell, its]) => {
      const answer = await this.#ask(cell, its);
      if (answer?.point) told.set(cell, { point: answer.point, confirmed: answer.confirmed });
      for (const [index, hold] of its.entries())
        verdicts.set(executionKey(hold), answer?.verdicts[index] ?? "unknown");
    });
    const over = asked.filter((hold) => {
      const verdict = verdicts.get(executionKey(hold));
      return verdict === "committed" || verdict === "rolled_back" || verdict === "gone";
    });
    const clears = chunksOf(over, CHUNK_ROWS, () => 2).map((holds) =>
      this.#commits.submit("clear", () => this.#clear(holds, verdicts, told), { weight: 2 * holds.length }),
    );
    await Promise.all(clears);
    return verdicts;
  }

  async #ask(
    cell: string,
    asked: readonly ExecutionId[],
  ): Promise<(InquiryAnswer & Pick<ToldPoint, "confirmed">) | undefined> {
    const placement = this.#placementGuard.placement;
    // A shard that has lost a part of its history must not change what is left (H4).
    if (placement === undefined || this.#history.isLost) return undefined;
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
    return answer.kind === "ok" && answer.value.verdicts.length === asked.length && !this.#history.isLost
      ? { ...answer.value, confirmed: seen ?? null }
      : undefined;
  }

  /** Reads the holds again after the wait, and changes only those that are still the same (M1). */
  #clear(
    over: readonly HoldRow[],
    verdicts: ReadonlyMap<string, Verdict>,
    told: ReadonlyMap<string, ToldPoint>,
  ): void {
    if (this.#history.isLost) return;
    for (const cell of new Set(over.map((hold) => hold.cell))) {
      const ledger = told.get(cell);
      if (ledger !== undefined) this.#log.note(cell, ledger.point, ledger.confirmed);
    }
    const now = this.#ports.clock.now();
    for (const asked of over) {
      const key = executionKey(asked);
      const hold = this.#store.holdOn(asked.bucket_type, asked.canonical);
      if (hold === undefined || executionKey(hold) !== key) continue;
      if (verdicts.get(key) === "committed") this.#store.apply(hold, now);
      this.#store.deleteHold(hold);
    }
  }
}

/** Returns a key that identifies one execution. It is the same for all holds of the execution. */
export function executionKey({ cell, lease, incarnation, counter, epoch }: ExecutionId | HoldRow): string {
  return `${cell}/${lease}/${incarnation}.${counter}/${epoch}`;
}

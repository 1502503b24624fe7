import { ask } from "../ask.ts";
import { fanOut } from "../fan-out.ts";
import type { GroupCommit } from "../group-commit.ts";
import type { Limits } from "../../../common/limits.ts";
import {
  type HeldKey,
  type HistoryPoint,
  type HoldState,
  type Inquiry,
  type InquiryAnswer,
  type Verdict,
} from "../messages.ts";
import type { Peers } from "../methods.ts";
import type { Ports } from "../ports.ts";
import type { PlacementGuard } from "../placement-guard.ts";
import { ok } from "../refusal.ts";
import { sharedTraces, type Traces } from "../traces.ts";
import { CHUNK_ROWS, chunksOf } from "./chunks.ts";
import type { Slot } from "../slot.ts";
import type { Standing } from "../standing.ts";
import { endHolds, type EndedAs } from "./end-holds.ts";
import { InquiryQueue } from "./inquiry-queue.ts";
import type { Residence } from "./residence.ts";
import type { ShardLog } from "./shard-log.ts";
import { bucketText, executionKey, keyOf, type AskedHold, type ExecutionId, type HoldRow } from "./rows.ts";
import type { ShardStore } from "./store.ts";
import type { WideHolds } from "./wide-holds.ts";

const VERDICT_STATES = {
  granted: "granted",
  running: "running",
  unknown: "unknown",
  committed: "free",
  rolled_back: "free",
  gone: "free",
} as const;

/** An answer of a ledger. `confirmed`: the stored point of the ledger that it has confirmed (H5). */
type LedgerAnswer = InquiryAnswer & { confirmed: HistoryPoint | null };

interface CarriedOut {
  /** By `executionKey`. */
  verdicts: ReadonlyMap<string, Verdict>;
  /**
   * Resolves when the holds whose executions are over have been durably applied or dropped. False: the answer
   * was not carried out.
   */
  cleared: Promise<boolean>;
}

interface Needs {
  readonly ports: Ports;
  readonly limits: Limits;
  readonly store: ShardStore;
  readonly log: ShardLog;
  readonly standing: Slot<Standing>;
  readonly placementGuard: PlacementGuard;
  readonly commits: GroupCommit;
  readonly peers: Pick<Peers, "ledger">;
  readonly residence: Slot<Pick<Residence, "serves">>;
  readonly wide: Slot<WideHolds>;
  readonly index: number;
}

/** Asks the ledgers that own holds about them, and carries out their answers (B8). */
export class Inquirer {
  readonly #part: Needs;
  readonly #queue = new InquiryQueue((cell, holds, traces) => this.#carryOut(cell, holds, traces));

  constructor(part: Needs) {
    this.#part = part;
  }

  async settle(keys: readonly HeldKey[], traces: Traces): Promise<HoldState[]> {
    const found = this.#part.store.holdsOn(keys);
    const wide = this.#part.wide.current;
    const holds = keys.map((key) => {
      const named = wide.named(key);
      return named === undefined ? (found.get(bucketText(key.type, key.canonical)) ?? null) : named;
    });
    const verdicts = await this.inquire(
      holds.filter((hold) => hold !== null),
      traces,
    );
    return holds.map((hold) => {
      if (hold === null) return "free";
      // It is there until its decision is applied to its end.
      if (hold.canonical === undefined && wide.isUnfinished(hold.lease)) return "unknown";
      return VERDICT_STATES[verdicts.get(executionKey(hold)) ?? "unknown"];
    });
  }

  /**
   * Asks one question per execution. When it resolves, those of the given holds whose executions are over
   * have been durably applied or dropped. Other holds of these executions stay until they are asked about,
   * because finding them would read all holds (M7). The result is keyed by `executionKey`.
   */
  async inquire(asked: readonly AskedHold[], traces?: Traces): Promise<Map<string, Verdict>> {
    const verdicts = new Map<string, Verdict>(asked.map((hold) => [executionKey(hold), "unknown"]));
    // Other shards ask about what they serve. A wide hold is of this shard.
    const served = asked.filter(
      (hold) => hold.canonical === undefined || this.#part.residence.current.serves(keyOf(hold)),
    );
    const byCell = Map.groupBy(served, ({ cell }) => cell);
    await fanOut([...byCell], this.#part.limits.fanOut, async ([cell, holds]) => {
      const answers = await this.#queue.ask(cell, holds, traces);
      for (const answer of answers)
        if (await answer.cleared) for (const [key, verdict] of answer.verdicts) verdicts.set(key, verdict);
    });
    return verdicts;
  }

  /** Sends a message to a ledger, and clears the holds whose executions are over according to its answer. */
  async #carryOut(cell: string, holds: readonly AskedHold[], traces: Traces): Promise<CarriedOut> {
    const executions = new Map(holds.map((hold) => [executionKey(hold), hold]));
    const answer = await this.#ask(cell, [...executions.values()], traces);
    const verdicts = new Map(
      [...executions.keys()].map((key, index) => [key, answer?.verdicts[index] ?? "unknown"]),
    );
    const over = holds.filter((hold) => endedAs(verdicts.get(executionKey(hold))) !== undefined);
    const wideWeight = this.#part.wide.current.weightOf();
    const clearWeight = (hold: AskedHold): number => (hold.canonical === undefined ? wideWeight : 2);
    const clears = chunksOf(over, CHUNK_ROWS, clearWeight).map((chunk) =>
      this.#part.commits.submit("clear", () => ok(this.#clear(cell, chunk, verdicts, answer)), {
        weight: chunk.reduce((sum, hold) => sum + clearWeight(hold), 0),
      }),
    );
    const cleared = Promise.all(clears).then((all) => all.every((each) => each.ok && each.value));
    // A caller that fails by another message does not wait for this one.
    cleared.catch(() => {});
    return { verdicts, cleared };
  }

  async #ask(cell: string, asked: readonly ExecutionId[], traces: Traces): Promise<LedgerAnswer | undefined> {
    const placement = this.#part.placementGuard.placement;
    // A shard that has lost a part of its history must not change what is left (H4).
    if (placement === undefined || this.#part.standing.current.stopped !== undefined) return undefined;
    const questions = asked.map(({ lease, incarnation, counter, epoch, granted_by: grantedBy = null }) => ({
      lease,
      incarnation,
      counter,
      epoch,
      ...(grantedBy === null ? {} : { grantedBy }),
    }));
    const seen = this.#part.log.sightings.current.of(cell);
    const message: Inquiry = {
      placement,
      ...(seen === undefined ? {} : { seen }),
      ...sharedTraces([traces]),
      shard: this.#part.index,
      questions,
    };
    const answer = await ask(this.#part.ports.clock, this.#part.limits.inquiryTimeoutMs, () =>
      this.#part.peers.ledger(cell).inquire(message),
    );
    if (answer.kind === "refused") await this.#part.placementGuard.learn(answer.refusal);
    return answer.kind === "ok" && answer.value.verdicts.length === asked.length
      ? { ...answer.value, confirmed: seen ?? null }
      : undefined;
  }

  /**
   * Reads the holds again after the wait, and changes only those that are still the same (M1). Returns false
   * if it changes nothing, because another instance of the ledger has told its point during the wait (H5).
   */
  #clear(
    cell: string,
    over: readonly AskedHold[],
    verdicts: ReadonlyMap<string, Verdict>,
    answer: LedgerAnswer | undefined,
  ): boolean {
    const { sightings } = this.#part.log;
    if (answer !== undefined && !sightings.current.note(cell, answer.point, answer.confirmed)) return false;
    const now = this.#part.ports.clock.now();
    const holds = over.filter((asked) => asked.canonical !== undefined);
    const found = this.#part.store.holdsOn(holds.map(keyOf));
    const ended: { hold: HoldRow; as: EndedAs }[] = [];
    for (const asked of over) {
      const as = endedAs(verdicts.get(executionKey(asked)));
      if (asked.canonical === undefined && as !== undefined) this.#part.wide.current.end(asked, as, now);
    }
    for (const asked of holds) {
      const bucket = bucketText(asked.bucket_type, asked.canonical);
      const hold = found.get(bucket);
      if (hold === undefined || executionKey(hold) !== executionKey(asked)) continue;
      if (!this.#part.residence.current.serves(keyOf(hold))) continue;
      const as = endedAs(verdicts.get(executionKey(hold)));
      if (as === undefined) continue;
      found.delete(bucket);
      ended.push({ hold, as });
    }
    endHolds(this.#part.store, this.#part.log, ended, true, now);
    return true;
  }

  /** Notes leases that are granted, if they were not noted before (F3). */
  async tellGranted(asked: readonly HoldRow[], verdicts: ReadonlyMap<string, Verdict>): Promise<void> {
    const granted = asked.filter(
      (hold) => verdicts.get(executionKey(hold)) === "granted" && !this.#part.log.notes.current.isTold(hold),
    );
    if (granted.length === 0) return;
    const executions = new Set(granted.map(executionKey));
    await this.#part.commits.submit("clear", () => {
      for (const hold of this.#part.store.holdsOn(granted.map(keyOf)).values())
        if (this.#part.residence.current.serves(keyOf(hold)) && executions.has(executionKey(hold)))
          this.#part.log.notes.current.noteGranted(hold);
    });
  }
}

/** Undefined: the execution is not over, or it is not known. */
const endedAs = (verdict: Verdict | undefined): EndedAs | undefined =>
  verdict === "committed" || verdict === "rolled_back" || verdict === "gone" ? verdict : undefined;

import type { Exchange } from "../../../src/coordinator/kernel/messages.ts";
import type { WritePoint } from "../../../src/coordinator/kernel/write-points.ts";
import { Random } from "./random.ts";
import type {
  CellCrash,
  DiskFault,
  LocalFault,
  MessageFault,
  RecordFault,
  SimulationSettings,
} from "./simulation-settings.ts";

interface Partition {
  parts: readonly [string, string];
  untilMs: number;
}

/** Few runs reach these writes, so faults are drawn several times for them. */
const RARE_WRITES: ReadonlySet<WritePoint> = new Set([
  "prune",
  "set_state",
  "revoke_cell_key",
  "change_types",
  "use_types",
  "report_status",
  "start_growth",
  "order_cut",
  "confirm_cut",
  "abort_growth",
  "finish_growth",
  "fence",
  "move_claims",
  "raise_format",
]);

/**
 * The names of random streams that differ from what they are for. A stream's name is part of what a seed
 * determines, so renaming a crash point must not rename its stream.
 */
const STREAM_NAMES: Partial<Record<CellCrash, string>> = { before_verify_repair: "before_verify_mend" };

const hasOutcome = ({ decisions }: Exchange): boolean =>
  decisions.some(({ outcome }) => outcome !== "PRECOMMITTED");

/** How long work waits for its transaction while `slowsTurns`, on average. */
const SLOW_TURN_MS = 20;

/** Draws faults and counts them. `areOff` ends all faults. */
export class Faults {
  readonly counts = new Map<string, number>();
  areOff = false;
  /** Whether work waits long for its transaction, also while `areOff`. */
  slowsTurns = false;
  /** Whether every answer to an exchange is lost, also while `areOff`. */
  losesExchanges = false;
  /** Whether no exchange arrives, also while `areOff`. */
  stopsExchanges = false;
  /** Whether no shard hears of a decision by an exchange, also while `areOff`. */
  stopsDecisions = false;
  /** Whether no inquiry arrives, also while `areOff`. */
  stopsInquiries = false;
  /** Parts that get no names of other shards, also while `areOff`. */
  readonly getNoNames = new Set<string>();
  partitions: Partition[] = [];
  /** Parts that answer slowly, and until when. */
  readonly slowUntilMs = new Map<string, number>();
  readonly #seed: number;
  readonly #settings: SimulationSettings;
  /**
   * One random stream per sender, receiver and method, so that a change in one part's behaviour does not
   * change the faults of all other messages.
   */
  readonly #streams = new Map<string, Random>();

  constructor(seed: number, settings: SimulationSettings) {
    this.#seed = seed;
    this.#settings = settings;
  }

  count(kind: string): void {
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1);
  }

  message(from: string, to: string, method: string, message: unknown): MessageFault | undefined {
    if (this.stopsExchanges && method === "exchange") return "lose";
    if (this.stopsDecisions && method === "exchange" && hasOutcome(message as Exchange)) return "lose";
    if (this.stopsInquiries && method === "inquire") return "lose";
    if (method === "receive" && this.getNoNames.has(to)) return "lose";
    if (this.losesExchanges && method === "exchange") return "lose_answer";
    return this.#draw(`${from}>${to}.${method}`, this.#settings.messages);
  }

  disk(part: string, points: readonly WritePoint[]): DiskFault | undefined {
    const stream = `disk ${part}`;
    const fault = this.#draw(stream, this.#settings.disks);
    return fault === undefined &&
      points.some((point) => RARE_WRITES.has(point)) &&
      this.stream(stream).chance(0.9)
      ? this.disk(part, points)
      : fault;
  }

  record(): RecordFault | undefined {
    return this.#draw("record", this.#settings.records);
  }

  local(cell: string): LocalFault | undefined {
    return this.#draw(`local ${cell}`, this.#settings.locals);
  }

  /** Draws whether the process of a cell dies at this point. */
  cell(cell: string, where: CellCrash): boolean {
    if (
      this.areOff ||
      !this.stream(`cell ${cell} ${STREAM_NAMES[where] ?? where}`).chance(this.#settings.cellCrashes[where])
    )
      return false;
    this.count(`cell:${where}`);
    return true;
  }

  isCut(a: string, b: string, nowMs: number): boolean {
    if (this.areOff) return false;
    const cut = this.partitions.some(
      ({ parts, untilMs }) => nowMs < untilMs && parts.includes(a) && parts.includes(b),
    );
    if (cut) this.count("partition");
    return cut;
  }

  latencyMs(part: string, nowMs: number): number {
    const random = this.stream(`latency ${part}`);
    // Without faults, messages are faster than every timeout. Otherwise the work at the end of a run would
    // never finish.
    const base = random.exponential(this.areOff ? 1 : this.#settings.messageMs);
    if (this.areOff || (this.slowUntilMs.get(part) ?? 0) <= nowMs) return base;
    this.count("slow");
    return base + random.exponential(2_000);
  }

  diskMs(part: string): number {
    return this.stream(`disk time ${part}`).exponential(this.#settings.diskMs);
  }

  recordMs(): number {
    // Without faults, D1 is faster than the cron's timeouts.
    return this.stream("record time").exponential(
      this.areOff ? this.#settings.diskMs : this.#settings.recordMs,
    );
  }

  turnMs(part: string): number {
    if (this.slowsTurns) return this.stream(`turn ${part}`).exponential(SLOW_TURN_MS);
    const { turnMs } = this.#settings;
    return turnMs === 0 ? 0 : this.stream(`turn ${part}`).exponential(turnMs);
  }

  stream(name: string): Random {
    let random = this.#streams.get(name);
    if (random === undefined) {
      random = Random.of(this.#seed, name);
      this.#streams.set(name, random);
    }
    return random;
  }

  #draw<K extends string>(stream: string, rates: Readonly<Record<K, number>>): K | undefined {
    if (this.areOff) return undefined;
    let left = this.stream(stream).next();
    for (const kind in rates) {
      left -= rates[kind];
      if (left >= 0) continue;
      this.count(kind);
      return kind;
    }
    return undefined;
  }
}

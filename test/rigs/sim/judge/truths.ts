import type { ClaimRow } from "../../../../src/coordinator/kernel/shard/rows.ts";
import { nameKey, type Name } from "../local.ts";
import type { Evidence } from "./evidence.ts";
import { rangeOver } from "./rows.ts";

/** What lookups show of a name from a moment on: the cell and the epoch, or `none`. */
interface Truth {
  fromMs: number;
  shown: string;
}

/** The times of routers and of the judge are the same, but are not computed in the same order. */
const ROUNDING_MS = 0.01;

/** The whole history of what lookups show of some names. */
export class Truths {
  readonly #evidence: Evidence;
  readonly #names: readonly Name[];
  readonly #changed: (name: Name) => void;
  readonly #truths = new Map<string, Truth[]>();

  /** @param changed called when lookups show something else of a name */
  constructor(evidence: Evidence, names: readonly Name[], changed: (name: Name) => void = () => {}) {
    this.#evidence = evidence;
    this.#names = names;
    this.#changed = changed;
  }

  /** Must be called whenever something became durable. */
  refresh(): void {
    const fromMs = this.#evidence.coordinator.nowMs();
    for (const name of this.#names) {
      const key = nameKey(name);
      const shown = this.#shownNow(name);
      const truths = this.#truths.get(key) ?? [];
      this.#truths.set(key, truths);
      if (truths.at(-1)?.shown === shown) continue;
      truths.push({ fromMs, shown });
      if (truths.length > 1) this.#changed(name);
    }
  }

  /** Whether it was true at some moment from `fromMs` on. */
  wasTrue(key: string, shown: string, fromMs: number): boolean {
    const truths = this.#truths.get(key) ?? [];
    return truths.some((truth, index) => {
      const untilMs = truths[index + 1]?.fromMs ?? Infinity;
      return truth.shown === shown && untilMs + ROUNDING_MS >= fromMs;
    });
  }

  /** Whether the name was not the cell's at some moment from `fromMs` on. */
  wasNotOf(cell: string, key: string, fromMs: number): boolean {
    const truths = this.#truths.get(key) ?? [];
    return truths.some((truth, index) => {
      const untilMs = truths[index + 1]?.fromMs ?? Infinity;
      return !truth.shown.startsWith(`cell ${cell} `) && untilMs + ROUNDING_MS >= fromMs;
    });
  }

  describe(key: string, fromMs: number): string {
    const truths = this.#truths.get(key) ?? [];
    return truths
      .slice(-6)
      .map((truth) => `${truth.shown} from ${Math.round(truth.fromMs - fromMs)} ms on`)
      .join(", ");
  }

  /** What a lookup would show now (R2, Y4), from the durable rows of the shard and the ledgers. */
  #shownNow({ type, canonical }: Name): string {
    const shard = this.#evidence.homeOf({ type, canonical });
    const key = nameKey({ type, canonical });
    const image = this.#evidence.images[shard];
    const claim = image?.claims.get(key);
    const range = rangeOver(image?.ranges, claim);
    if (range !== undefined)
      return shownOf(this.#evidence.stateOf(range, shard) === "COMMITTED" ? range : claim);
    const hold = image?.holds.get(key);
    switch (hold === undefined ? undefined : this.#evidence.stateOf(hold, shard)) {
      case "GRANTED":
        return shownOf(hold?.kind === "create" ? hold : claim);
      case "COMMITTED":
        return shownOf(hold?.kind === "destroy" ? undefined : hold);
      default:
        return shownOf(claim);
    }
  }
}

const shownOf = (row: Pick<ClaimRow, "cell" | "epoch"> | undefined): string =>
  row === undefined ? "none" : `cell ${row.cell} epoch ${row.epoch}`;

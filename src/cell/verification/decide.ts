import { chunkDefaults } from "../chunks.ts";
import type { Drift, Extra, LeftBecause } from "./drift.ts";
import type { Examined } from "./examine.ts";
import { foresee } from "./preview.ts";
import { Mender, type Outcome } from "./repair.ts";
import { keyOfRecord } from "./row-names.ts";
import type { Settings } from "./options.ts";
import type { Pending, Together } from "./pending-drifts.ts";
import { addExtra, Wanted, type Part, type Place } from "./cursor.ts";
import { givenUpKey, rowKey, type QueuedRow, type VerificationPorts, type VerifiedTable } from "./ports.ts";
import { mendQueued } from "./queue.ts";
import type { Tally } from "./counts.ts";

/** Decides what is done about what was found, and has it done. */
export class Settler {
  readonly #ports: VerificationPorts;
  readonly #settings: Settings;
  readonly #place: Place;
  readonly #tally: Tally;
  readonly #wanted: Wanted;
  /** Names of rows of the queue that the report has told of. */
  readonly #told = new Set<string>();
  question: string | undefined;

  /** `place` hears of what is left to the second pass. */
  constructor(ports: VerificationPorts, settings: Settings, place: Place, tally: Tally) {
    this.#ports = ports;
    this.#settings = settings;
    this.#place = place;
    this.#tally = tally;
    this.#wanted = new Wanted(place.wanted);
  }

  get wanted(): Place["wanted"] {
    return this.#wanted.stored;
  }

  async queued(rows: readonly QueuedRow[]): Promise<void> {
    const left = await mendQueued(this.#ports, this.#settings, rows, (source, outcome) =>
      this.#tally.endedOfQueue(source, outcome),
    );
    for (const { want } of left) {
      this.#told.add(toldKey(want));
      this.#wanted.add(want.key);
    }
  }

  /** Puts what is to be done with what waits. True: somebody has to be asked first. */
  async collect(
    part: Part,
    from: string,
    { comparison, ...examined }: Examined,
    pending: Pending,
  ): Promise<boolean> {
    const { pass, table } = part;
    const { apply } = this.#settings;
    const drifts = comparison.drifts.filter(
      (drift) => drift.action === "destroy" || !this.#told.has(toldKey(drift.want)),
    );
    if (pass === "names")
      this.#tally.found(table.source, { ...examined, comparison: { ...comparison, drifts } });
    if (apply && pass === "names") {
      for (const key of comparison.wanted) this.#wanted.add(key);
      for (const drift of drifts)
        if (drift.action === "destroy") addExtra(this.#place, table.source, from, drift.record.source.id);
    }
    const todo = apply
      ? drifts.filter((drift) => (pass === "extras") === (drift.action === "destroy"))
      : drifts;
    pending.add(await this.#spare(table, todo), examined.recency);
    return apply && (await this.#mustAsk(table, pending));
  }

  /** Only about what would really change: names that somebody has are looked up before. */
  async #mustAsk({ source }: VerifiedTable, pending: Pending): Promise<boolean> {
    if (this.#tally.questionOf(pending.drifts.length) === undefined) return false;
    const { todo, left } = await foresee(this.#ports, pending.drifts);
    for (const each of left) this.#ended(source, { ...each, done: false });
    pending.replace(todo);
    this.question = this.#tally.questionOf(todo.length);
    return this.question !== undefined;
  }

  async settle({ table }: Part, { drifts, recency }: Together): Promise<void> {
    if (this.#settings.apply) await this.#mender(table).mend(drifts, recency);
    else await this.#plan(table, drifts);
  }

  async #plan({ source }: VerifiedTable, drifts: readonly Drift[]): Promise<void> {
    const { todo, left } = await foresee(this.#ports, drifts);
    for (const each of left) this.#tally.ended(source, { ...each, done: false });
    for (const drift of todo) this.#tally.planned(drift);
  }

  #mender({ source }: VerifiedTable): Mender {
    const limits = { ...chunkDefaults, ops: this.#settings.leaseOps };
    return new Mender(this.#ports, limits, this.#settings.recentMs, (outcome) =>
      this.#ended(source, outcome),
    );
  }

  #ended(source: string, outcome: Outcome): void {
    this.#tally.ended(source, outcome);
    const { drift } = outcome;
    // Whatever kept the row from its name: as long as it has none, no claim on it may go.
    if (!outcome.done && outcome.left !== "other_cell" && drift.action !== "destroy")
      this.#wanted.add(drift.want.key);
  }

  /** Without claims that somebody needs, or will give up by himself. */
  async #spare({ source }: VerifiedTable, drifts: readonly Drift[]): Promise<Drift[]> {
    const claims = new Map(
      drifts.flatMap((drift): [Drift, GivenUp][] =>
        drift.action === "destroy" ? [[drift, givenUpOf(drift)]] : [],
      ),
    );
    if (claims.size === 0) return [...drifts];
    // After the rows were read: a deletion that was saved before is either in here, or done.
    const later = await this.#ports.givenUpLater(new Set([...claims.values()].map(({ given }) => given)));
    return drifts.filter((drift) => {
      const claim = claims.get(drift);
      const left = claim && this.#reasonToLeave(claim, later);
      if (left !== undefined) this.#tally.ended(source, { drift, done: false, left });
      return left === undefined;
    });
  }

  #reasonToLeave({ key, given }: GivenUp, later: ReadonlySet<string>): LeftBecause | undefined {
    if (this.#wanted.has(key)) return "wanted";
    return later.has(given) ? "leased" : undefined;
  }
}

/** A claim that is to be given up: its name, and what a deletion to come would know it by. */
interface GivenUp {
  key: string;
  given: string;
}

function givenUpOf({ record }: Extra): GivenUp {
  const key = keyOfRecord(record);
  return { key, given: givenUpKey(key, record.source) };
}

const toldKey = ({ key, source }: { key: string; source: { type: string; id: string } }): string =>
  `${rowKey(source)}\n${key}`;

import type { CanonicalRule } from "../../../src/common/canonical/rule.ts";
import type { KnownTypes } from "../../../src/coordinator/capabilities/types/messages.ts";
import type {
  ScrubBegin,
  ScrubKind,
  ScrubPass,
  ScrubStatus,
} from "../../../src/coordinator/capabilities/scrub/messages.ts";
import type { SqlValue } from "../../../src/coordinator/kernel/ports.ts";
import type { StoredEntry } from "../../../src/coordinator/kernel/shard/hold-entries.ts";
import { bucketText } from "../../../src/coordinator/kernel/shard/rows.ts";
import { changeEntries, HOLDS } from "../../support/holds.ts";
import type { Api } from "./api.ts";
import type { Cell } from "./cell.ts";
import type { LocalRow } from "./local.ts";
import { throughOf } from "./judge/rows.ts";
import { opsOf, read } from "./made-leases.ts";
import type { Part } from "./part.ts";
import type { Random } from "./random.ts";
import type { Simulation } from "./simulation.ts";
import { Violation } from "./violation.ts";

type Rules = [type: number, rule: CanonicalRule][];

/** More steps than any pass of a run has. */
const MOST_STEPS = 3_000;

const MOST_PASSES = 5;

/** Longer than the last decisions and inquiries take, without faults. */
const SETTLED_MS = 20_000;
const PASS_STEPS = 20_000;

const BEGINS = { when_due: 3, if_none: 5, always: 1 } as const;

/** Asks the ledger of a cell, or a shard, for a step of its scrub, as the cron and operators do. */
export async function scrubStep(simulation: Simulation, cell: Cell, random: Random): Promise<void> {
  const { operator } = simulation;
  const begin = random.weighted(BEGINS);
  const shard = random.between(0, simulation.isolate.shards - 1);
  const rules = await rulesOf(operator);
  if (rules === undefined) return;
  if (random.chance(0.4)) await operator.toLedger(cell.id, "scrub", { begin, rules });
  else await operator.toShard(shard, "scrub", { begin, rules });
}

/** The rules of the types in use. Undefined: the directory does not answer. */
async function rulesOf(operator: Api): Promise<Rules | undefined> {
  const known = await operator.toDirectory<KnownTypes>("types", {});
  if (known.kind !== "ok") return undefined;
  return known.value.entries.flatMap(({ kind, number, rule, isInUse }) =>
    kind === "bucket" && isInUse && rule !== null ? [[number, rule] as [number, CanonicalRule]] : [],
  );
}

/**
 * Scrubs all parts while nothing else happens, with crashes between the steps. Then rows are changed behind
 * the backs of some parts, and another scrub must find them and nothing else.
 */
export async function checkScrubs(simulation: Simulation): Promise<void> {
  const stage = new Stage(simulation);
  await stage.makeLeases();
  await simulation.pass(SETTLED_MS, PASS_STEPS);
  for (const part of stage.parts) await stage.checkRows(part);
  simulation.endJudging();
  const expected = stage.damage();
  const found: string[] = [];
  for (const part of stage.parts) {
    const { counts } = await stage.scrub(part);
    for (const [kind, count] of Object.entries(counts))
      found.push(...Array<string>(count).fill(`${part.name}: ${kind}`));
  }
  simulation.judge.check(
    "I46",
    String(found.toSorted()) === String(expected.toSorted()),
    () =>
      `the scrubs should find [${expected.toSorted().join()}] and have found [${found.toSorted().join()}]`,
  );
  for (const finding of expected) simulation.judge.see(`scrub found ${finding.split(": ")[1]}`);
}

/**
 * Where rows are changed, and how. `where` selects the rows that can be changed like this. A hold loses its
 * subject id.
 */
interface Damage {
  table: "claim" | "hold" | "past_claim" | "lease";
  where: string;
  change: string;
  finds: readonly ScrubKind[];
}

const FREE = `(bucket_type, canonical) NOT IN (SELECT bucket_type, canonical FROM ${HOLDS})`;
const CREATES = "kind = 'create'";

const DAMAGES: readonly Damage[] = [
  { table: "claim", where: FREE, change: "digest_3 = digest_3 + 1", finds: ["wrong_digest"] },
  { table: "claim", where: FREE, change: "epoch = epoch + 1000000000", finds: ["wrong_epoch"] },
  { table: "claim", where: FREE, change: "source_order = '0017'", finds: ["wrong_source_order"] },
  { table: "claim", where: FREE, change: "uuid = uuid", finds: [] },
  { table: "past_claim", where: "true", change: "epoch = epoch + 1000000000", finds: ["wrong_epoch"] },
  { table: "hold", where: CREATES, change: "subject_id", finds: ["unfit_hold"] },
  { table: "lease", where: "decided = 0", change: "payload = 'x'", finds: ["unreadable_lease"] },
];

class Stage {
  readonly #simulation: Simulation;
  readonly #random: Random;

  constructor(simulation: Simulation) {
    this.#simulation = simulation;
    this.#random = simulation.faults.stream("scrubs");
  }

  /** Ledgers come first: the inquiries of shards end holds that belong to no lease. */
  get parts(): Part<object>[] {
    const { ledgers, shards } = this.#simulation.coordinator;
    return [...ledgers.values(), ...shards];
  }

  /** Begins leases of new names, and commits some of them. */
  async makeLeases(): Promise<void> {
    let names = 0;
    for (let round = 0; round < 3; round += 1)
      for (const cell of this.#simulation.cells) {
        names += 1;
        const lease = this.#random.uuid();
        const batch = { lease, ops: opsOf(cell, rowOf(names)), allowMissing: false };
        const begun = await this.#simulation.runUntil(cell.api.begin(cell.id, cell.caller, batch));
        if (begun.kind === "ok" && this.#random.chance(0.5))
          await this.#simulation.runUntil(cell.api.decide(cell.id, cell.caller, lease, "COMMITTED"));
      }
  }

  /** Checks that a pass reads each row of a part once, also if the part crashes between two steps. */
  async checkRows(part: Part<object>): Promise<void> {
    const before = rowsOf(part);
    const { rows, unchecked } = await this.scrub(part);
    const { judge } = this.#simulation;
    judge.check(
      "I46",
      rowsOf(part) !== before || rows === before,
      () => `a pass of ${part.name} has read ${rows} rows instead of ${before}`,
    );
    judge.check("I46", unchecked === 0, () => `a pass of ${part.name} has left out ${unchecked} rows`);
  }

  /** Carries out whole passes, until one has left nothing out because a shard answered too late. */
  async scrub(part: Part<object>): Promise<ScrubPass> {
    let pass = await this.#pass(part);
    for (let passes = 1; pass.unchecked > 0 && passes < MOST_PASSES; passes += 1)
      pass = await this.#pass(part);
    return pass;
  }

  async #pass(part: Part<object>): Promise<ScrubPass> {
    let status = await this.#step(part, "always");
    for (let steps = 0; status.running !== null; steps += 1) {
      if (steps > MOST_STEPS) throw new Violation("I46", `a pass of ${part.name} does not end`);
      if (this.#random.chance(0.3)) part.crash(part.disk.pending);
      status = await this.#step(part, "if_none");
    }
    if (status.last === null) throw new Violation("I46", `no pass of ${part.name} has ended`);
    return status.last;
  }

  async #step(part: Part<object>, begin: ScrubBegin): Promise<ScrubStatus> {
    const { operator } = this.#simulation;
    const rules = await this.#simulation.runUntil(rulesOf(operator));
    const reply = await this.#simulation.runUntil(operator.reply(part, "scrub", { begin, rules }));
    if (reply?.ok !== true)
      throw new Violation("I46", `${part.name} does not scrub without faults: ${JSON.stringify(reply)}`);
    return reply.value as ScrubStatus;
  }

  /** Changes some rows behind the backs of their parts. Returns what the scrubs must find. */
  damage(): string[] {
    const taken = new Set<string>();
    const changed = this.#random.some(DAMAGES, 4).flatMap((damage) => {
      const drawn = this.#draw(damage, taken);
      if (drawn === undefined) return [];
      change(drawn, damage.change, damage.table);
      return damage.finds.map((kind) => `${drawn.part.name}: ${kind}`);
    });
    return [...changed, ...this.#loseHold(taken)];
  }

  /** Deletes a hold of a granted lease, or gives it to another attempt. */
  #loseHold(taken: Set<string>): string[] {
    const drawn = this.#draw({ table: "hold", where: CREATES }, taken);
    if (drawn === undefined) return [];
    const isKept = this.#random.chance(0.5);
    changeLease(drawn, (entry) => (isKept ? (entry as unknown[]).with(COUNTER, entry[COUNTER] + 1) : null));
    return [`ledger ${drawn.row["cell"]}: missing_holds`];
  }

  /** Draws a row that no earlier damage is about. */
  #draw({ table, where }: Pick<Damage, "table" | "where">, taken: Set<string>): DrawnRow | undefined {
    const rows = this.parts.flatMap((part) => read<Row>(part, table, where).map((row) => ({ part, row })));
    const left = rows.filter(({ row }) => idsOf(row).every((id) => !taken.has(id)));
    if (left.length === 0) return undefined;
    const drawn = this.#random.pick(left);
    for (const id of idsOf(drawn.row)) taken.add(id);
    return drawn;
  }
}

type Row = Record<string, SqlValue>;

interface DrawnRow {
  part: Part<object>;
  row: Row;
}

/** What a row is about: a name, a lease, or both. */
const idsOf = (row: Row): string[] => [
  ...(row["canonical"] === undefined ? [] : [`${row["bucket_type"]} ${row["canonical"]}`]),
  ...(row["lease"] === undefined ? [] : [String(row["lease"])]),
];

/** The place of the counter in an entry of the log. */
const COUNTER = 7;

/** Changes the entries of a lease. */
function changeLease({ part, row }: DrawnRow, then: (entry: StoredEntry) => unknown): void {
  part.crash(part.disk.pending);
  const all = <Found>(text: string, ...bindings: SqlValue[]): Found[] => {
    if (text.startsWith("SELECT")) return part.disk.readDurable<Found>(text, ...bindings);
    part.disk.damage(text, ...bindings);
    return [];
  };
  changeEntries({ all }, (entry) =>
    entry[5] === row["lease"] ? (then(entry) as StoredEntry | null) : entry,
  );
}

/** The hold of a name loses its subject id. */
function withoutSubject(entry: StoredEntry, name: string): unknown {
  const holds: readonly unknown[] = entry[10].map((hold, index) =>
    hold !== 0 && entry[9][index] === name ? (hold as unknown[]).with(4, null) : hold,
  );
  return (entry as unknown[]).with(10, holds);
}

function change(drawn: DrawnRow, set: string, table: Damage["table"]): void {
  const { part, row } = drawn;
  if (table === "hold")
    return changeLease(drawn, (entry) =>
      withoutSubject(entry, bucketText(Number(row["bucket_type"]), String(row["canonical"]))),
    );
  const keys = table === "lease" ? ["lease"] : ["bucket_type", "canonical", "epoch"];
  part.crash(part.disk.pending);
  part.disk.damage(
    `UPDATE ${table} SET ${set} WHERE ${keys.map((key) => `${key} = ?`).join(" AND ")}`,
    ...keys.map((key) => row[key] ?? null),
  );
}

/** The rows that a pass of a part reads. */
const rowsOf = (part: Part<object>): number =>
  part.name.startsWith("shard")
    ? ["hold", "claim", "past_claim", "range_hold"].reduce(
        (sum, table) => sum + read(part, table, "true").length,
        0,
      )
    : read(part, "lease", "decided = 0").length +
      read(part, "lease", `created_position <= ${throughOf(part)}`).length;

const rowOf = (number: number): LocalRow => ({
  type: 1,
  canonical: `scrubbed-${number}`,
  value: `Scrubbed-${number}`,
  subject: { type: "NAMESPACE", id: String(number) },
  source: { type: "RAILS_TABLE_ROUTES", id: String(number) },
});

import type { Snapshot } from "../../../src/coordinator/kernel/directory/messages.ts";
import type { DeclaredTypes, KnownTypes } from "../../../src/coordinator/capabilities/types/messages.ts";
import type { Op } from "../../../src/coordinator/kernel/messages.ts";
import { ok, type Refusal, type Result } from "../../../src/coordinator/kernel/refusal.ts";
import { documentOf, typesOf, type TypesDocument } from "../../../src/common/types/document.ts";
import { Types, type TypeEntry, type TypeKind } from "../../../src/common/types/types.ts";
import { storedTypes, toApiRecord } from "../../../src/coordinator/api/answers.ts";
import { keyOf, opsOf, typesIn, type Batch } from "../../../src/coordinator/api/batch.ts";
import { shipped } from "../../support/types.ts";
import { isRefused } from "./api.ts";
import type { Cell } from "./cell.ts";
import type { Isolate } from "./isolate.ts";
import { isMark, markOf } from "./judge/type-watch.ts";
import type { Random } from "./random.ts";
import type { Simulation } from "./simulation.ts";

// Operators change the set of types, while cells claim and look up names of these types through isolates with
// copies of different ages. The names have no rows. Only few types are not in use at any time, so that
// operators and cells meet at the same ones.

/** How many types an operator chooses from, besides those that are in use. */
const CHOICE = 3;
const FIRST_NUMBER = 101;
/** In all spellings, these are two names of a folded type. */
const NAMES = ["ada", "bob"] as const;
const TRIES = 4;

const LISTS = { bucket: "bucket_types", subject: "subject_types" } as const;
type Kind = keyof typeof LISTS;

/** The types that operators have declared. */
const declaredOf = (types: Types, kind: TypeKind): TypeEntry[] =>
  types.entries.filter(
    (entry) => entry.kind === kind && shipped.named(kind, entry.name) === undefined && !isMark(entry),
  );

const namesOf = (types: Types, kind: Kind): string[] =>
  Array.from({ length: usedOf(types, kind) + CHOICE }, (_, index) => `${kind.toUpperCase()}_${index}`);

const numbersOf = (types: Types, kind: Kind): number[] =>
  Array.from({ length: usedOf(types, kind) + CHOICE }, (_, index) => FIRST_NUMBER + index);

const usedOf = (types: Types, kind: Kind): number =>
  declaredOf(types, kind).filter(({ isInUse }) => isInUse).length;

/** Changes the set, sometimes as two operators at once. */
export async function declareTypes(simulation: Simulation, _: Cell, random: Random): Promise<void> {
  const both = [changeSet(simulation, random)];
  if (random.chance(0.4)) both.push(changeSet(simulation, random));
  await Promise.all(both);
}

async function changeSet(simulation: Simulation, random: Random): Promise<void> {
  const { operator, judge, coordinator } = simulation;
  const read = random.chance(0.3) && simulation.lastTypes !== undefined ? simulation.lastTypes : undefined;
  const known = read ?? (await readTypes(simulation));
  if (known === undefined) return;
  if (random.chance(0.5)) await operator.sleep(random.exponential(random.pick([20, 500])));
  if (random.chance(0.1)) coordinator.directory.crash();
  simulation.typeChanges += 1;
  const entries = typesOf(changed(known.entries, simulation.typeChanges, random));
  if (!entries.ok) throw new Error(`an operator's set of types is refused: ${entries.refusal.detail}`);
  const copiedAt = simulation.cronJob.record.types()?.position ?? 0;
  const message = { position: known.position, entries: entries.value, copiedAt };
  for (let tried = 1; tried <= 2; tried += 1) {
    const answer = await operator.toDirectory<DeclaredTypes>("changeTypes", message);
    if (answer.kind === "ok") simulation.lastTypes = answer.value;
    if (isRefused(answer, "TYPE_IN_USE")) judge.see("refused TYPE_IN_USE");
    if (isRefused(answer, "CONCURRENT_CHANGE")) judge.see("refused a change of an older set of types");
    // A change that has been carried out is not carried out again.
    if (answer.kind !== "unknown") return;
  }
}

async function readTypes(simulation: Simulation): Promise<DeclaredTypes | undefined> {
  const answer = await simulation.operator.toDirectory<KnownTypes>("types", {});
  if (answer.kind !== "ok") return undefined;
  simulation.lastTypes = answer.value;
  return answer.value;
}

/** Makes one to three edits, and marks the set. */
function changed(entries: readonly TypeEntry[], change: number, random: Random): TypesDocument {
  const types = new Types(entries);
  const document = structuredClone(documentOf(entries.filter((entry) => !isMark(entry)))) as Editable;
  for (let edit = random.between(1, 3); edit > 0; edit -= 1) {
    const kind: Kind = random.chance(0.8) ? "bucket" : "subject";
    editOne(document[LISTS[kind]], kind, types, random);
  }
  const mark = markOf(change);
  document.subject_types[mark.name] = { number: mark.number };
  return document;
}

type Editable = Record<"bucket_types" | "subject_types" | "source_types", Record<string, Declaration>>;
type Declaration = TypesDocument["bucket_types"][string];

function editOne(list: Record<string, Declaration>, kind: Kind, types: Types, random: Random): void {
  const taken = new Set(Object.values(list).map(({ number }) => number));
  const free = numbersOf(types, kind).filter((number) => !taken.has(number));
  const absent = namesOf(types, kind).filter((name) => list[name] === undefined);
  const present = declaredOf(types, kind).filter(({ name }) => list[name] !== undefined);
  const unused = present.filter(({ isInUse }) => !isInUse);
  const name = pickOne(random.chance(0.9) ? unused : present, random)?.name;
  const number = pickOne(free, random);
  const edit = random.weighted({ add: 4, remove: 2, rule: 3, number: 2 });
  if (edit === "add" || name === undefined) {
    const added = pickOne(absent, random);
    if (added === undefined || number === undefined) return;
    list[added] = { number, ...(kind === "bucket" ? ruleOf(random) : {}) };
  } else if (edit === "remove") delete list[name];
  else if (edit === "rule" && kind === "bucket") {
    const letters = list[name]?.case === "exact" ? "folded" : "exact";
    list[name] = { number: 0, ...list[name], case: letters };
  } else if (number !== undefined) list[name] = { ...list[name], number };
}

const ruleOf = (random: Random): Omit<Declaration, "number"> => ({
  script: "any",
  case: random.pick(["exact", "folded"]),
});

const pickOne = <T>(items: readonly T[], random: Random): T | undefined =>
  items.length === 0 ? undefined : random.pick(items);

/** An isolate gets the newest set as part of a snapshot, and takes it over some time later, or restarts. */
export async function refreshTypes(simulation: Simulation, _: Cell, random: Random): Promise<void> {
  const isolate = random.pick(simulation.isolates);
  if (random.chance(0.15)) return isolate.restart();
  const { types: copy } = isolate;
  const { position } = copy;
  const fields = position === undefined ? {} : { typesPosition: position };
  const answer = await simulation.router.toDirectory<Snapshot>("snapshot", fields);
  if (answer.kind !== "ok" || answer.value.types === null) return;
  await simulation.router.sleep(random.exponential(random.pick([1, 1_000, 10_000])));
  copy.take(answer.value.types);
}

/** Claims names of declared types. The Worker that makes them canonical may be another one each time. */
export async function claimDeclared(simulation: Simulation, cell: Cell, random: Random): Promise<void> {
  const { judge } = simulation;
  const batch = drawBatch(simulation, cell, random);
  const lease = random.uuid();
  const references = typesIn(batch);
  for (let tried = 1; tried <= TRIES; tried += 1) {
    const watched = judge.types.watch();
    const made = await opsThrough(simulation, random.pick(simulation.isolates), batch);
    if (made.ok) {
      judge.types.accepted();
      judge.types.made(cell.id, lease, made.value.ops, made.value.types);
      const begun = await cell.api.begin(cell.id, cell.caller, {
        lease,
        ops: made.value.ops,
        allowMissing: false,
      });
      if (begun.kind === "refused") return;
      if (begun.kind === "ok") {
        const outcome = random.chance(0.85) ? "COMMITTED" : "ROLLED_BACK";
        await cell.api.decide(cell.id, cell.caller, lease, outcome);
        return;
      }
    } else {
      judge.types.refused(watched, made.refusal, references);
      if (made.refusal.code === "INVALID_ARGUMENT") return;
      if (made.refusal.reason === "TYPES_CHANGED") judge.see("a type was changed before its first begin");
    }
    await cell.api.sleep(random.exponential(random.pick([5, 500])));
  }
}

/** Turns a batch into ops as the handlers do: only when it is valid, its types come into use. */
async function opsThrough(
  { coordinator, isolate, judge }: Simulation,
  { types: copy }: Isolate,
  batch: Batch,
): Promise<Result<{ ops: Op[]; types: Types }>> {
  const references = typesIn(batch);
  const types = await copy.forRead(references);
  if (!types.ok) return types;
  if (types.value.select(references).some(({ isInUse }) => !isInUse)) judge.see("T4");
  const ops = opsOf(batch, types.value, isolate.shards, coordinator.limits);
  if (!ops.ok) throw new Error(`a valid batch is refused: ${ops.refusal.detail}`);
  const used = await copy.use(types.value, references);
  return used.ok ? ok({ ops: ops.value, types: types.value }) : used;
}

function drawBatch({ judge }: Simulation, cell: Cell, random: Random): Batch {
  const { types } = judge.types;
  const creates = random.some(NAMES, 2).map((name) => {
    cell.rows += 1;
    return {
      bucket: { type: drawType(types, "bucket", random), value: spelled(name, random) },
      subject: {
        type: random.chance(0.6) ? "NAMESPACE" : drawType(types, "subject", random),
        id: `${cell.id}-${cell.rows}`,
      },
      source: { type: "RAILS_TABLE_ROUTES", id: String(cell.rows) },
    };
  });
  return { creates };
}

/** Mostly a type that is declared now, and in half of the cases one that is not in use yet. */
function drawType(types: Types, kind: Kind, random: Random): string {
  const declared = declaredOf(types, kind);
  const unused = declared.filter(({ isInUse }) => !isInUse);
  const drawn = pickOne(random.chance(0.5) && unused.length > 0 ? unused : declared, random);
  return drawn === undefined || random.chance(0.1) ? random.pick(namesOf(types, kind)) : drawn.name;
}

const spelled = (name: string, random: Random): string =>
  random.pick([name, name, name.toUpperCase(), `${name.slice(0, 1).toUpperCase()}${name.slice(1)}`]);

/** Looks up a name of a declared type, as the Worker does. */
export async function lookUpDeclared(simulation: Simulation, _: Cell, random: Random): Promise<void> {
  const { judge, router, coordinator } = simulation;
  const isolate = random.pick(simulation.isolates);
  const bucket = drawBucket(simulation, random);
  const reference = { kind: "bucket", name: bucket.type, field: "bucket_type" } as const;
  const watched = judge.types.watch(reference, bucket.value);
  const { types: copy } = isolate;
  const types = await copy.forRead([reference]);
  if (!types.ok) return judge.types.refused(watched, types.refusal, [reference]);
  judge.types.accepted();
  const key = keyOf(bucket, types.value, "", coordinator.limits);
  if (!key.ok) throw new Error(`a valid name is refused: ${key.refusal.detail}`);
  const { type, canonical } = key.value;
  const answer = await router.lookup(simulation.shardOf({ type, canonical }), [key.value]);
  const found = answer.kind === "ok" ? answer.value.found[0] : undefined;
  if (found === undefined) return;
  let shown: string | undefined;
  if (found.kind === "record") {
    const known = await copy.forAnswer(storedTypes([found.record]));
    const isReached = known.ok || known.refusal.retryAfterMs !== undefined || isFault(known.refusal);
    judge.check(
      "I30",
      isReached,
      () => `a lookup of ${bucket.type} found a name that the Worker cannot show`,
    );
    if (known.ok) shown = toApiRecord(known.value, found.record).bucket.type;
    judge.see("T5");
  }
  judge.types.lookedUp(watched, bucket.type, found, shown);
}

/** Whether a message did not arrive in time, or not as it was sent. */
const isFault = ({ code, reason }: Refusal): boolean => code === "DEADLINE_EXCEEDED" || reason !== undefined;

/** In most cases a name that has a claim. */
function drawBucket({ judge }: Simulation, random: Random): { type: string; value: string } {
  const { types } = judge.types;
  const claims = judge.declaredClaims();
  const claim = random.chance(0.7) ? pickOne(claims, random) : undefined;
  const entry = claim === undefined ? undefined : types.numbered("bucket", claim.bucket_type);
  if (claim === undefined || entry === undefined)
    return { type: drawType(types, "bucket", random), value: spelled(random.pick(NAMES), random) };
  const value = entry.rule?.case === "folded" ? spelled(claim.canonical, random) : claim.canonical;
  return { type: entry.name, value };
}

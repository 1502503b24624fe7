import {
  blockedBy,
  type Operation,
  type OperationSet,
} from "../../../../src/coordinator/capabilities/operations/operations.ts";
import { shardsOf } from "../../../../src/coordinator/kernel/placement.ts";
import type { Growth } from "../../../../src/coordinator/capabilities/growth/messages.ts";
import type { Part } from "../part.ts";
import type { Evidence } from "./evidence.ts";

/** Checks what the parts have stored of a growth (G1, G2). */
export class GrowthWatch {
  readonly #evidence: Evidence;
  readonly #versions = new Map<string, number>();
  /** The number of shards of the placement that the directory has. */
  #shards = 0;
  #running: Pick<Operation, "id" | "kind">[] = [];
  readonly #early = new Set<string>();
  /** The growth whose cut was ordered last. */
  #ordered: string | undefined;
  /** The growth that D1 has a copy of. */
  copied: () => Growth | null = () => null;

  constructor(evidence: Evidence) {
    this.#evidence = evidence;
  }

  /** Somebody makes up what the shards of before say, so the cut may come too early. */
  expectEarlyCut(growth: string): void {
    this.#early.add(growth);
  }

  /** Must be called when the images of the shards were read. */
  refresh(): void {
    const { directory, ledgers, allShards } = this.#evidence.coordinator;
    const before = this.#shards;
    if (this.#isNew(directory)) {
      this.#checkOperations(directory);
      this.#shards = placedOn(directory);
      this.#evidence.check(
        "I49",
        this.#shards >= before,
        () => `the directory had ${before} shards and has ${this.#shards}`,
      );
    }
    for (const part of [...ledgers.values(), ...allShards]) if (this.#isNew(part)) this.#check(part);
  }

  /** Checks what has started in the directory since the last look (A5, G1). */
  #checkOperations(directory: Part<object>): void {
    const [growth, { operations }] = [growthOf(directory), operationsOf(directory)];
    const before = this.#running;
    const running = [
      ...(growth === null ? [] : [{ id: growth.id, kind: "growth" as const }]),
      ...operations.map(({ id, kind }) => ({ id, kind })),
    ];
    for (const { id, kind } of running) {
      if (before.some((other) => other.id === id)) continue;
      const other = before.find(
        (each) => blockedBy[kind].includes(each.kind) && running.some((now) => now.id === each.id),
      );
      this.#evidence.check("I56", other === undefined, () => `a ${kind} has started beside ${other?.id}`);
    }
    if (before.some(({ kind, id }) => kind === "reconciliation" && !running.some((now) => now.id === id)))
      this.#evidence.see("A6");
    this.#running = running;
    const isOrdered = growth?.phase === "cutting" && this.#ordered !== growth.id;
    if (!isOrdered) return;
    this.#ordered = growth.id;
    for (const shard of this.#evidence.coordinator.allShards.slice(0, growth.from))
      this.#evidence.check(
        "I56",
        this.#early.has(growth.id) || hasCopied(shard, growth.id),
        () => `the cut of growth ${growth.id} was ordered before ${shard.name} could follow`,
      );
    // One that begins after the cut, in the same transaction, is allowed.
    const reconciled = operations.find(
      ({ kind, position }) => kind === "reconciliation" && position < growth.position,
    );
    this.#evidence.check("I56", reconciled === undefined, () => `${reconciled?.id} is reconciled at a cut`);
  }

  #isNew({ name, disk }: Part<object>): boolean {
    if (this.#versions.get(name) === disk.version) return false;
    this.#versions.set(name, disk.version);
    return true;
  }

  #check(part: Part<object>): void {
    const shards = placedOn(part);
    const first = this.#evidence.coordinator.shards.length;
    if (shards <= first) return;
    const copy = this.copied();
    this.#evidence.check(
      "I49",
      shards <= this.#shards && copy !== null && copy.to >= shards && isCut(copy, shards),
      () => `${part.name} has ${shards} shards, but D1 has the growth ${JSON.stringify(copy)}`,
    );
    this.#evidence.see("G2");
    this.#evidence.see("G3");
  }

  /** Checks at the end of all growths that every name is where it belongs, and nowhere else (G1, G7). */
  checkEnd(shards: number): void {
    for (const [index, { growing, stored }] of this.#evidence.images.entries()) {
      const rows = stored.claims.size + stored.holds.size;
      if (growing.shards === 0) {
        this.#evidence.check(
          "I49",
          rows === 0,
          () => `shard ${index} was never used, and has ${rows} rows of a growth that was aborted`,
        );
        continue;
      }
      this.#evidence.check(
        "I49",
        growing.shards === shards || rows === 0,
        () => `shard ${index} has ${growing.shards} shards and ${rows} rows after a growth to ${shards}`,
      );
      this.#evidence.check(
        "I49",
        growing.fencedFrom === undefined && growing.target === undefined,
        () => `shard ${index} has not ended the growth: ${JSON.stringify(growing)}`,
      );
    }
  }
}

const isCut = ({ from, phase }: Growth, shards: number): boolean => phase !== "copying" || from >= shards;

const growthOf = (directory: Part<object>): Growth | null =>
  (metaOf(directory, "growth") as { growth: Growth | null } | undefined)?.growth ?? null;

/** The operations that the directory has stored, without a growth. */
export const operationsOf = (directory: Part<object>): Pick<OperationSet, "operations"> =>
  (metaOf(directory, "operations") as OperationSet | undefined) ?? { operations: [] };

/** Whether a shard of before has sent all rows of this growth once, and no transfer holds claims of it. */
function hasCopied(shard: Part<object>, growth: string): boolean {
  const source = metaOf(shard, "growth_source") as { id: string; cursor: unknown } | undefined;
  const [held] = shard.disk.readDurable("SELECT 1 FROM range_hold LIMIT 1");
  return held === undefined && source?.id === growth && source.cursor === null;
}

function metaOf({ disk }: Part<object>, name: string): unknown {
  const [table] = disk.readDurable("SELECT 1 FROM sqlite_master WHERE name = 'meta'");
  if (table === undefined) return undefined;
  const [row] = disk.readDurable<{ value: string }>(`SELECT value FROM meta WHERE name = '${name}'`);
  return row === undefined ? undefined : JSON.parse(row.value);
}

/** The number of shards of the placement that a part has stored. 0: none. */
function placedOn({ disk }: Part<object>): number {
  const [table] = disk.readDurable("SELECT 1 FROM sqlite_master WHERE name = 'meta'");
  if (table === undefined) return 0;
  const [row] = disk.readDurable<{ value: string }>("SELECT value FROM meta WHERE name = 'placement'");
  return row === undefined ? 0 : shardsOf(row.value);
}

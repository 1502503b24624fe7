import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { Kind } from "./entry.ts";
import { Random } from "./random.ts";

export const MAX_NAMES = 10_000;

/** Of all names: wanted by both cells. */
const CONTESTED = 0.15;
/** Of all names: kept back, so that there are real names to rename to. */
const RESERVED = 0.03;
/** Of the names without a slash: those of people, the others are of groups. */
const PEOPLE = 0.25;

export interface NameRequest {
  name: string;
  kind: Kind;
}

/** How many places further a cell may come to a name than the common order says. */
const JITTER = 60;

/** Who wants what, and in which order. */
export interface Workload {
  names: NameRequest[];
  /**
   * Per cell. Both follow one common order, roughly: they want a contested name at about the same time, now
   * this one first, now that one.
   */
  orders: Record<"1" | "2", NameRequest[]>;
  contested: Set<string>;
  /** For renames; nobody asks for them before. */
  reserve: NameRequest[];
}

export async function readNames(): Promise<string[]> {
  const path = fileURLToPath(new URL("data/routes-10k.txt", import.meta.url));
  const names = (await readFile(path, "utf8")).trimEnd().split("\n");
  // The demo keeps its own idea of which spellings are the same name, to judge the coordinator by. For ASCII
  // that is simple.
  if (names.some((name) => !/^[\x21-\x7e]+$/.test(name)))
    throw new Error("demo/data/routes-10k.txt has a name that is not ASCII");
  if (new Set(names.map(keyOf)).size !== names.length)
    throw new Error("demo/data/routes-10k.txt has a name twice");
  return names;
}

/** Two spellings are the same name when their keys are equal. */
export const keyOf = (name: string): string => name.toLowerCase();

export function makeWorkload(all: readonly string[], count: number, seed: number): Workload {
  const random = new Random(seed, "plan");
  const names = random
    .shuffled(all)
    .slice(0, count)
    .map((name) => ({ name, kind: kindOf(name, random) }));
  const reserved = Math.round(count * RESERVED);
  const reserve = names.slice(0, reserved);
  const wanted = names.slice(reserved);
  const contested = new Set(
    random
      .shuffled(wanted)
      .slice(0, Math.round(count * CONTESTED))
      .map(({ name }) => name),
  );
  const orders: Workload["orders"] = { "1": [], "2": [] };
  for (const want of wanted) {
    const both = contested.has(want.name);
    const first = random.chance(0.5);
    if (both || first) orders["1"].push(want);
    if (both || !first) orders["2"].push(want);
  }
  for (const id of ["1", "2"] as const) orders[id] = jittered(orders[id], random);
  return { names, orders, contested, reserve };
}

function jittered<T>(items: readonly T[], random: Random): T[] {
  const placed = items.map((item, index) => ({ item, place: index + random.next() * JITTER }));
  return placed.toSorted((a, b) => a.place - b.place).map(({ item }) => item);
}

function kindOf(name: string, random: Random): Kind {
  if (name.includes("/")) return "project";
  return random.chance(PEOPLE) ? "user" : "group";
}

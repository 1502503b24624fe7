import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { Kind } from "./entry.ts";
import { Random } from "./random.ts";

export const MAX_NAMES = 10_000;

/** The share of all names that both cells want. */
const CONTESTED = 0.15;
/** The share of all names that are reserved as new names for renames. */
const RESERVED = 0.03;
/** The share of the names without a slash that belong to people. The others belong to groups. */
const PEOPLE = 0.25;

export interface NameRequest {
  name: string;
  kind: Kind;
}

/** How far a name may move from its position in the common order, in each cell's own order. */
const JITTER = 60;

/** The names that each cell wants, and in which order. */
export interface Workload {
  names: NameRequest[];
  /**
   * The names that each cell claims. Both lists roughly follow one common order, so that the cells want a
   * contested name at about the same time, and either may be first.
   */
  orders: Record<"1" | "2", NameRequest[]>;
  contested: Set<string>;
  /** New names for renames. No cell claims them before that. */
  reserve: NameRequest[];
}

export async function readNames(): Promise<string[]> {
  const path = fileURLToPath(new URL("data/routes-10k.txt", import.meta.url));
  const names = (await readFile(path, "utf8")).trimEnd().split("\n");
  // The demo checks the coordinator, so it must not use the coordinator's canonical form. For ASCII names,
  // lower case is enough.
  if (names.some((name) => !/^[\x21-\x7e]+$/.test(name)))
    throw new Error("demo/data/routes-10k.txt contains a name that is not ASCII; restore the file from git");
  if (new Set(names.map(keyOf)).size !== names.length)
    throw new Error("demo/data/routes-10k.txt contains a name twice; restore the file from git");
  return names;
}

/** Two spellings are the same name if their keys are equal. */
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

import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import { compareBytes, sourceOrder } from "../../core/source-order.ts";
import type { VerificationPorts, VerifiedTable } from "./ports.ts";
import { noCounts, type VerificationCounts } from "./report.ts";

export type Pass = "names" | "extras";

/** A table, in one of the passes. */
export interface Part {
  pass: Pass;
  table: VerifiedTable;
}

interface StoredWanted {
  marks: readonly string[];
  isFull: boolean;
}

const MAX_WANTED = 100_000;
const MARK_BYTES = 8;

/**
 * Names that rows use without having the claim: whoever has one does not give it up. More than can be kept, and nobody gives up anything. Kept as
 * the beginning of their hash: of two names with one mark, both are spared.
 */
export class Wanted {
  readonly #marks: Set<string>;
  #isFull: boolean;

  constructor({ marks, isFull }: StoredWanted) {
    this.#marks = new Set(marks);
    this.#isFull = isFull;
  }

  add(key: string): void {
    const mark = markOf(key);
    if (this.#marks.size < MAX_WANTED) this.#marks.add(mark);
    else this.#isFull ||= !this.#marks.has(mark);
  }

  has(key: string): boolean {
    return this.#isFull || (this.#marks.size > 0 && this.#marks.has(markOf(key)));
  }

  get stored(): StoredWanted {
    return { marks: [...this.#marks], isFull: this.#isFull };
  }
}

const markOf = (key: string): string =>
  bytesToHex(sha256(new TextEncoder().encode(key)).subarray(0, MARK_BYTES));

/** Where a verification is, as it is stored between two runs. */
export interface Place {
  version: 3;
  /** Nothing is left to be done. */
  isDone: boolean;
  /** A run of it ended with a question. */
  isAsking: boolean;
  /** All records are read, whatever their digests are. */
  isWhole: boolean;
  /** Of the first run, by its clock: what it has seen of names is out of date some day. */
  beganAtMs: number;
  /** What it is about: after a change of tables or switches it begins again. */
  about: string;
  pass: Pass;
  source: string;
  after: string;
  /** By source type: where the first pass found claims to give up. */
  extras: Record<string, { after: string; upTo: string }>;
  wanted: StoredWanted;
  /** Changes so far: what they have used up of the share stays used up. */
  spent: number;
  tables: Record<string, VerificationCounts>;
}

/** Of a verification that is not done: what was behind its place may have changed past the cell by then. */
export const MAX_AGE_MS = 86_400_000;

const aboutOf = ({ tables }: VerificationPorts): string =>
  JSON.stringify(tables.map(({ source, bucketTypes }) => [source, bucketTypes]));

export function firstPlace(ports: VerificationPorts, isWhole: boolean, spent = 0): Place {
  const [first] = ports.tables;
  return {
    version: 3,
    isDone: false,
    isAsking: spent > 0,
    isWhole,
    beganAtMs: Date.now(),
    about: aboutOf(ports),
    pass: "names",
    source: first?.source ?? "",
    after: "",
    extras: {},
    wanted: { marks: [], isFull: false },
    spent,
    tables: Object.fromEntries(ports.tables.map(({ source }) => [source, noCounts()])),
  };
}

interface Stored {
  /** As it was read. */
  text: string | undefined;
  /** Undefined where there is nothing to go on with. */
  place: Place | undefined;
  /** By a verification that is not gone on with and has asked: neither time nor a process with other tables is an answer. */
  spent: number;
  /** Since a verification that applied was done; undefined: there is none, or another one has begun since. */
  doneMs: number | undefined;
}

/** `isWhole`: goes on with nothing, and takes nothing for done, in which digests may have spoken for records. */
export async function readPlace(ports: VerificationPorts, isWhole: boolean): Promise<Stored> {
  const stored = await ports.progress.load();
  const found = placeOf(stored?.text);
  const none = { text: stored?.text, place: undefined, spent: 0, doneMs: undefined };
  if (stored === undefined || found === undefined) return none;
  const isAbout = found.about === aboutOf(ports) && (found.isWhole || !isWhole);
  if (found.isDone) return { ...none, doneMs: isAbout ? stored.ageMs : undefined };
  const isFresh = stored.ageMs < MAX_AGE_MS && Date.now() - found.beganAtMs < MAX_AGE_MS;
  return { ...none, place: isAbout && isFresh ? found : undefined, spent: found.isAsking ? found.spent : 0 };
}

function placeOf(text: string | undefined): Place | undefined {
  try {
    const place = JSON.parse(text ?? "") as Place;
    return place.version === 3 ? place : undefined;
  } catch {
    return undefined;
  }
}

/** A claim of this source id is to be given up in the second pass. `after`: where the stretch began in which it was found. */
export function addExtra(place: Place, source: string, after: string, id: string): void {
  const known = place.extras[source];
  if (known === undefined) place.extras[source] = { after, upTo: id };
  else if (compareBytes(sourceOrder(id), sourceOrder(known.upTo)) > 0) known.upTo = id;
}

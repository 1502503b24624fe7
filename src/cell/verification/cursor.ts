import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import { compareBytes, sourceOrder } from "../../core/source-order.ts";
import type { VerificationPorts, VerifiedTable } from "./ports.ts";
import { noCounts, type VerificationCounts } from "./report.ts";

export type Pass = "claim" | "release";

/** A table, in one of the passes. */
export interface TablePass {
  pass: Pass;
  table: VerifiedTable;
}

interface StoredNeededNames {
  hashes: readonly string[];
  isOverfull: boolean;
}

const MAX_NEEDED_NAMES = 100_000;
const HASH_BYTES = 8;

/**
 * Names that rows use without having the claim: whoever has one does not give it up. More than can be kept, and nobody gives up anything. Kept as
 * the beginning of their hash: of two names with one hash, both are spared.
 */
export class NeededNames {
  readonly #hashes: Set<string>;
  #isOverfull: boolean;

  constructor({ hashes, isOverfull }: StoredNeededNames) {
    this.#hashes = new Set(hashes);
    this.#isOverfull = isOverfull;
  }

  add(key: string): void {
    const hash = hashOf(key);
    if (this.#hashes.size < MAX_NEEDED_NAMES) this.#hashes.add(hash);
    else this.#isOverfull ||= !this.#hashes.has(hash);
  }

  has(key: string): boolean {
    return this.#isOverfull || (this.#hashes.size > 0 && this.#hashes.has(hashOf(key)));
  }

  get stored(): StoredNeededNames {
    return { hashes: [...this.#hashes], isOverfull: this.#isOverfull };
  }
}

const hashOf = (key: string): string =>
  bytesToHex(sha256(new TextEncoder().encode(key)).subarray(0, HASH_BYTES));

/** Where a verification is, as it is stored between two runs. */
export interface Cursor {
  version: 1;
  /** Nothing is left to be done. */
  isDone: boolean;
  /** A run of it ended with a question. */
  needsApproval: boolean;
  /** All records are read, whatever their digests are. */
  isFull: boolean;
  /** Of the first run, by its clock: what it has seen of names is out of date some day. */
  startedAtMs: number;
  /** What it is about: after a change of tables or switches it begins again. */
  scope: string;
  pass: Pass;
  source: string;
  after: string;
  /** By source type: where the first pass found claims to give up. */
  releaseRanges: Record<string, { after: string; upTo: string }>;
  neededNames: StoredNeededNames;
  /** Changes so far: what they have used up of the share stays used up. */
  changes: number;
  tables: Record<string, VerificationCounts>;
}

/** Of a verification that is not done: what was behind its cursor may have changed past the cell by then. */
export const MAX_AGE_MS = 86_400_000;

const scopeOf = ({ tables }: VerificationPorts): string =>
  JSON.stringify(tables.map(({ source, bucketTypes }) => [source, bucketTypes]));

export function initialCursor(ports: VerificationPorts, isFull: boolean, changes = 0): Cursor {
  const [first] = ports.tables;
  return {
    version: 1,
    isDone: false,
    needsApproval: changes > 0,
    isFull,
    startedAtMs: Date.now(),
    scope: scopeOf(ports),
    pass: "claim",
    source: first?.source ?? "",
    after: "",
    releaseRanges: {},
    neededNames: { hashes: [], isOverfull: false },
    changes,
    tables: Object.fromEntries(ports.tables.map(({ source }) => [source, noCounts()])),
  };
}

interface Stored {
  /** As it was read. */
  text: string | undefined;
  /** Undefined where there is nothing to go on with. */
  cursor: Cursor | undefined;
  /** By a verification that is not gone on with and has asked: neither time nor a process with other tables is an answer. */
  changes: number;
  /** Since a verification that applied was done; undefined: there is none, or another one has begun since. */
  doneMs: number | undefined;
}

/** `isWhole`: goes on with nothing, and takes nothing for done, in which digests may have spoken for records. */
export async function readCursor(ports: VerificationPorts, isFull: boolean): Promise<Stored> {
  const stored = await ports.progress.load();
  const found = cursorOf(stored?.text);
  const none = { text: stored?.text, cursor: undefined, changes: 0, doneMs: undefined };
  if (stored === undefined || found === undefined) return none;
  const isSameScope = found.scope === scopeOf(ports) && (found.isFull || !isFull);
  if (found.isDone) return { ...none, doneMs: isSameScope ? stored.ageMs : undefined };
  const isFresh = stored.ageMs < MAX_AGE_MS && Date.now() - found.startedAtMs < MAX_AGE_MS;
  return {
    ...none,
    cursor: isSameScope && isFresh ? found : undefined,
    changes: found.needsApproval ? found.changes : 0,
  };
}

function cursorOf(text: string | undefined): Cursor | undefined {
  try {
    const cursor = JSON.parse(text ?? "") as Cursor;
    return cursor.version === 1 ? cursor : undefined;
  } catch {
    return undefined;
  }
}

/** A claim of this source id is to be given up in the second pass. `after`: where the segment began in which it was found. */
export function extendReleaseRange(cursor: Cursor, source: string, after: string, id: string): void {
  const range = cursor.releaseRanges[source];
  if (range === undefined) cursor.releaseRanges[source] = { after, upTo: id };
  else if (compareBytes(sourceOrder(id), sourceOrder(range.upTo)) > 0) range.upTo = id;
}

import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import { compareBytes, sourceOrder } from "../../../common/source-order.ts";
import type { Counts } from "./counts.ts";
import type { IdRange, VerificationPorts, VerifiedTable } from "./ports.ts";
import { noCounts, type VerificationCounts } from "./report.ts";

/**
 * The first pass creates and replaces claims for rows that lack them. The second one destroys extra claims.
 */
export type Pass = "claim" | "release";

/** A table in one of the two passes. */
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
 * Names that rows use without having the claim. The second pass destroys no claim on such a name. Only the
 * first 8 bytes of each name's hash are kept: a collision keeps a claim that could have gone, which is
 * harmless. With more than 100,000 names the set is overfull, and then no claim is destroyed at all.
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

const VERSION = 1;

/** The cursor of a verification, as the cell's database stores it between two runs. */
export interface Cursor {
  version: typeof VERSION;
  isDone: boolean;
  /** The last run stopped because it needed approval. */
  needsApproval: boolean;
  /** All records are compared, even where digests are equal. */
  isFull: boolean;
  /** When the first run started, by that process's clock. */
  startedAtMs: number;
  /** The tables and columns that are verified. When they change, the verification starts over. */
  scope: string;
  pass: Pass;
  source: string;
  after: string;
  /** By source type: the range in which the first pass found claims for the second pass to destroy. */
  releaseRanges: Record<string, { after: string; upTo: string }>;
  neededNames: StoredNeededNames;
  /** Changes made so far. A later run may only make as many more as the limits leave. */
  changes: number;
  tables: Record<string, VerificationCounts>;
}

export type CursorPosition = Pick<Cursor, "pass" | "source" | "after">;

/**
 * An older unfinished verification starts over: rows it has already passed may have changed without the SDK.
 */
export const MAX_AGE_MS = 86_400_000;

const scopeOf = ({ tables }: VerificationPorts): string =>
  JSON.stringify(tables.map(({ source, bucketTypes }) => [source, bucketTypes]));

const positionOf = ({ pass, source, after }: Cursor): CursorPosition => ({ pass, source, after });

export function initialCursor(ports: VerificationPorts, isFull: boolean, changes = 0): Cursor {
  const [first] = ports.tables;
  return {
    version: VERSION,
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

interface SavedProgress {
  /** The text that was read, to notice later whether another run has replaced it. */
  text: string | undefined;
  /** Undefined if there is nothing to resume. */
  cursor: Cursor | undefined;
  /**
   * Changes of a verification that still needs approval and cannot be resumed. They keep counting: neither
   * the passing of time nor a process with other tables is an approval.
   */
  changes: number;
  /** How long ago a verification was finished. Undefined if there was none, or a later one has begun. */
  doneMs: number | undefined;
}

/**
 * Reads what the last run has saved. A cursor of another version of the SDK is not resumed, but its changes
 * count.
 *
 * @param isFull ignores cursors of runs that trusted digests
 */
export async function readCursor(ports: VerificationPorts, isFull: boolean): Promise<SavedProgress> {
  const stored = await ports.progress.load();
  const found = cursorOf(stored?.text);
  const none = { text: stored?.text, cursor: undefined, changes: 0, doneMs: undefined };
  if (stored === undefined || found === undefined) return none;
  const isSameScope =
    found.version === VERSION && found.scope === scopeOf(ports) && (found.isFull || !isFull);
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
    return JSON.parse(text ?? "") as Cursor;
  } catch {
    return undefined;
  }
}

interface CursorStart {
  cursor: Cursor;
  /** The text in the database when the run started. */
  text: string | undefined;
  /** A dry run saves nothing. */
  isDryRun: boolean;
}

/**
 * The cursor of one run, and how much of it is saved. Between two calls of `advance`, the position ahead is
 * only in memory: the next run starts from the saved position and repeats the rest.
 */
export class RunCursor {
  readonly neededNames: NeededNames;
  readonly #progress: VerificationPorts["progress"];
  readonly #counts: Counts;
  readonly #isDryRun: boolean;
  readonly #cursor: Cursor;
  #savedPosition: CursorPosition;
  #savedText: string | undefined;
  /** Changes made so far, including those that are about to be made. */
  #announcedChanges: number;
  /** Whether another run may have replaced the saved cursor. */
  #mayBeReplaced = false;

  constructor(
    progress: VerificationPorts["progress"],
    counts: Counts,
    { cursor, text, isDryRun }: CursorStart,
  ) {
    this.neededNames = new NeededNames(cursor.neededNames);
    this.#progress = progress;
    this.#counts = counts;
    this.#isDryRun = isDryRun;
    this.#cursor = cursor;
    this.#savedPosition = positionOf(cursor);
    this.#savedText = text;
    this.#announcedChanges = cursor.changes;
  }

  get savedPosition(): CursorPosition {
    return this.#savedPosition;
  }

  get after(): string {
    return this.#cursor.after;
  }

  get isFull(): boolean {
    return this.#cursor.isFull;
  }

  isAt({ pass, table }: TablePass): boolean {
    return pass === this.#cursor.pass && table.source === this.#cursor.source;
  }

  /** The part of a table that a pass reads. Undefined if there is nothing to do. */
  boundsOf({ pass, table }: TablePass): IdRange | undefined {
    if (table.bucketTypes.length === 0) return undefined;
    return pass === "claim" ? { after: "", upTo: undefined } : this.#cursor.releaseRanges[table.source];
  }

  /** Has the second pass look at this source id. `after`: the start of the segment in which it was found. */
  extendReleaseRange(source: string, after: string, id: string): void {
    const { releaseRanges } = this.#cursor;
    const range = releaseRanges[source];
    if (range === undefined) releaseRanges[source] = { after, upTo: id };
    else if (compareBytes(sourceOrder(id), sourceOrder(range.upTo)) > 0) range.upTo = id;
  }

  /** Moves to the start of a table in a pass. Nothing is saved before the next `advance`. */
  enter(tablePass: TablePass): void {
    if (!this.isAt(tablePass))
      Object.assign(this.#cursor, { pass: tablePass.pass, source: tablePass.table.source, after: "" });
  }

  /** Saves the position: everything up to `after` is done and counted. */
  async advance(after = this.#cursor.after): Promise<void> {
    await this.#save({ after, ...this.#counts.current });
    this.#counts.checkpoint();
    this.#cursor.after = after;
    if (!this.#isDryRun) this.#savedPosition = positionOf(this.#cursor);
  }

  /** Counts changes before they are made, so that a run that dies has made no more than are counted (V5). */
  async announce(changes: number): Promise<void> {
    this.#announcedChanges = this.#counts.current.changes + changes;
    await this.#saveChanges(this.#announcedChanges);
  }

  /** The next run needs approval too, with the changes of this one counted. */
  async requestApproval(): Promise<void> {
    this.#cursor.needsApproval = true;
    await this.#saveChanges();
  }

  async finish(): Promise<void> {
    await this.#save({ isDone: true, needsApproval: false });
  }

  /** Saves the changes of a run that failed. `isOutcomeUnknown`: announced changes may have been made. */
  async abandon(isOutcomeUnknown: boolean): Promise<void> {
    if (this.#mayBeReplaced) return;
    await this.#saveChanges(isOutcomeUnknown ? this.#announcedChanges : undefined);
  }

  /** Reads the saved cursor again. False if another run has replaced it. */
  async isStillSaved(): Promise<boolean> {
    this.#mayBeReplaced = true;
    const isOurs = (await this.#progress.load())?.text === this.#savedText;
    this.#mayBeReplaced = !isOurs;
    return isOurs;
  }

  /** The position stays where it was saved last: the next run repeats what lies ahead of it. */
  async #saveChanges(changes = this.#counts.current.changes): Promise<void> {
    await this.#save({ ...this.#savedPosition, changes });
  }

  async #save(more: Partial<Cursor>): Promise<void> {
    if (this.#isDryRun) return;
    const neededNames = this.neededNames.stored;
    const text = JSON.stringify({ ...this.#cursor, ...this.#counts.atCheckpoint, neededNames, ...more });
    await this.#progress.save(text);
    this.#savedText = text;
  }
}

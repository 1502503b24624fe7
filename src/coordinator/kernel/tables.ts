import { FORMAT, oldestFormat, type Stamp } from "./formats.ts";
import type { Told } from "./messages.ts";
import { META_TABLE, readMeta, writeMeta } from "./meta.ts";
import type { Clock, Ports, Sql, SqlValue } from "./ports.ts";
import { refused, type Refusal, type Result } from "./refusal.ts";

/**
 * The steps that make the tables of an object. They are append-only, and none of them rewrites rows. Each is
 * carried out once, and all that are due in one transaction. The first step of a capability may find its
 * tables already there, because 0.2.0 made those of all capabilities in one step. Code of the format before
 * must be able to work with the tables afterwards, unless the step waits for a format.
 */
export type Steps = readonly Step[];
type Step = readonly string[] | LateStep;

export type StepsByCapability = Readonly<Record<string, Steps>>;

/** A step after which code of an earlier format cannot work with the tables: the last of its release. */
interface LateStep {
  /** The step is carried out when this format is in force. */
  format: number;
  statements: readonly string[];
}

/** How long an object tells that it has heard older code. */
const OLDER_HEARD_MS = 60_000;

/** What an object stores of its tables. */
export interface StoredTables {
  /** The number of steps of the kernel that were carried out. */
  steps: number;
  /** The format in force, as far as the object knows. */
  format: number;
}

/** The number of steps of each capability that were carried out. */
export type DoneSteps = Readonly<Record<string, number>>;

/** This code cannot work with the tables of an object, and must not change them. */
export class UnknownTables extends Error {}

/** The tables of one object, and what it knows of the format in force (M5, M9). */
export class Tables {
  readonly #sql: Sql;
  readonly #clock: Clock;
  readonly #steps: Steps;
  readonly #capabilities: StepsByCapability;
  readonly #speaks: number;
  #stored: StoredTables;
  /** It is stored apart, because code of 0.2.0 writes the other numbers as it knows them. */
  #done: DoneSteps;
  #olderHeardAtMs = -Infinity;

  /**
   * Brings the tables up to date.
   *
   * @throws {UnknownTables} If the code cannot work with them. Nothing was changed.
   */
  constructor(
    { sql, clock, speaks = FORMAT }: Pick<Ports, "sql" | "clock" | "speaks">,
    steps: Steps,
    capabilities: StepsByCapability = {},
  ) {
    this.#sql = sql;
    this.#clock = clock;
    this.#steps = steps;
    this.#capabilities = capabilities;
    this.#speaks = speaks;
    sql.all(META_TABLE);
    const fault = tablesFault((name) => readMeta(sql, name), speaks);
    if (fault !== undefined) throw new UnknownTables(fault);
    const stored = parsed(readMeta(sql, "tables")) ?? { steps: 0, format: 0 };
    // An object that was never used has nothing of an older format.
    const isUsed = readMeta(sql, "placement") !== undefined;
    const format = isUsed ? stored.format : Math.max(stored.format, oldestFormat(speaks));
    this.#stored = { ...stored, format };
    this.#done = JSON.parse(String(readMeta(sql, "capability_steps") ?? "{}")) as DoneSteps;
    if (this.#due().length > 0) sql.transaction(["migrate"], () => this.#carryOut());
  }

  /** Why this code cannot work here before it is told of a newer format. */
  get fault(): string | undefined {
    return unfinished(this.#stored.format, this.#speaks);
  }

  /** What the object tells of itself with its messages and answers. */
  get stamp(): Stamp {
    return { speaks: this.#speaks, format: this.#stored.format };
  }

  /** Carries out a message that can be read here, if its sender can read the answer. */
  async serve<T>(sender: Stamp, work: () => Promise<Result<T> & Told>): Promise<Result<T> & Told> {
    const refusal = this.#admit(sender);
    if (refusal !== undefined) return { ok: false, refusal, ...this.stamp };
    const answer = await work();
    // The format was raised meanwhile (M1). The outcome is unknown to the sender (M2).
    if (!this.#isReadBy(sender)) throw new Error("the caller cannot read an answer in the format in force");
    const heardMs = this.#clock.now() - this.#olderHeardAtMs;
    // A clock that went back lengthens nothing (M4).
    const hearsOlder = heardMs >= 0 && heardMs < OLDER_HEARD_MS;
    return { ...answer, ...this.stamp, ...(hearsOlder ? { hearsOlder } : {}) };
  }

  /** Returns why a message cannot be read, or its answer could not be. Stores a newer format first. */
  #admit(sender: Stamp): Refusal | undefined {
    const { speaks, format } = sender;
    if (speaks < this.#speaks) this.#olderHeardAtMs = this.#clock.now();
    if (format > this.#speaks)
      return formatUnknown(`this object runs an older version, which does not speak format ${format}`);
    if (format > this.#stored.format) this.#follow(format);
    if (this.fault !== undefined) return formatUnknown(this.fault);
    return this.#isReadBy(sender)
      ? undefined
      : formatUnknown(`format ${this.#stored.format} is in force, which the caller's version does not speak`);
  }

  #follow(format: number): void {
    const [before, done] = [this.#stored, this.#done];
    try {
      this.#sql.transaction(["raise_format"], () => this.raise(format));
    } catch (error) {
      // Nothing was written.
      this.#stored = before;
      this.#done = done;
      throw error;
    }
  }

  /** Puts a format in force and carries out the steps that waited for it, in the current transaction. */
  raise(format: number): void {
    if (format === this.#stored.format) return;
    this.#stored = { ...this.#stored, format };
    this.#carryOut();
  }

  /** Whether a sender can read what is written here. */
  #isReadBy({ speaks }: Stamp): boolean {
    return speaks >= this.#stored.format;
  }

  /** The steps to carry out, those of the kernel first. */
  #due(): Step[] {
    return [
      ...this.#dueOf(this.#steps, this.#stored.steps),
      ...Object.entries(this.#capabilities).flatMap(([name, own]) => this.#dueOf(own, this.#done[name])),
    ];
  }

  /** The steps after the first `done` ones, up to one that waits for a later format. */
  #dueOf(steps: Steps, done = 0): Steps {
    const waiting = steps.findIndex(
      (step, n) => n >= done && isLate(step) && step.format > this.#stored.format,
    );
    return steps.slice(done, waiting === -1 ? steps.length : waiting);
  }

  /** Carries out what is due, in the current transaction. */
  #carryOut(): void {
    const due = this.#due();
    for (const step of due)
      for (const statement of isLate(step) ? step.statements : step) this.#sql.all(statement);
    const count = (steps: Steps, done = 0): number => done + this.#dueOf(steps, done).length;
    const done: Record<string, number> = { ...this.#done };
    for (const [name, own] of Object.entries(this.#capabilities)) done[name] = count(own, done[name]);
    const stored = { steps: count(this.#steps, this.#stored.steps), format: this.#stored.format };
    writeMeta(this.#sql, "tables", JSON.stringify(stored));
    if (Object.keys(done).length > 0) writeMeta(this.#sql, "capability_steps", JSON.stringify(done));
    this.#stored = stored;
    this.#done = done;
  }
}

/** Reads a value of an object's table `meta`. */
type ReadMeta = (name: "tables" | "schema_version" | "placement") => SqlValue | undefined;

/** Returns why code that speaks a format cannot work with the tables of an object. */
export function tablesFault(stored: ReadMeta, speaks = FORMAT): string | undefined {
  const format = parsed(stored("tables"))?.format;
  // Before 0.2.0, there were no formats, and steps could still be changed.
  if (format === undefined)
    return (stored("tables") ?? stored("schema_version")) === undefined
      ? undefined
      : "its tables are of a version before 0.2.0, which this one cannot take over: with that version, " +
          "write all claims to a file with `leasehold backup create`, and restore it into a new deployment";
  if (format > speaks)
    return (
      `its tables need a newer version of Leasehold: format ${format} is in force, and this version speaks ` +
      `${speaks} at most`
    );
  return undefined;
}

/** Returns why code that speaks a format cannot work with a directory, as far as its tables tell. */
export function upgradeFault(stored: ReadMeta, speaks = FORMAT): string | undefined {
  const format = parsed(stored("tables"))?.format;
  return format === undefined || stored("placement") === undefined ? undefined : unfinished(format, speaks);
}

const unfinished = (format: number, speaks: number): string | undefined =>
  format >= oldestFormat(speaks)
    ? undefined
    : `the last upgrade was not finished: format ${format} is in force, and this version speaks ` +
      `${oldestFormat(speaks)} and later; run the version before it, and give \`leasehold upgrade finish\``;

const isLate = (step: Step): step is LateStep => "statements" in step;

const formatUnknown = (detail: string): Refusal =>
  refused("UNAVAILABLE", `${detail}; repeat the call`, { reason: "FORMAT_UNKNOWN", retryAfterMs: 1_000 })
    .refusal;

const parsed = (stored: SqlValue | undefined): StoredTables | undefined =>
  stored === undefined ? undefined : (JSON.parse(String(stored)) as StoredTables);

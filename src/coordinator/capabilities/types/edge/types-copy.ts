import { ask } from "../../../kernel/ask.ts";
import type { DeclaredTypes, TypeSet } from "../messages.ts";
import type { Limits } from "../../../../common/limits.ts";
import type { Envelope } from "../../../kernel/messages.ts";
import { ok, refused, type Refusal, type Result } from "../../../kernel/refusal.ts";
import { Types, type NamedType, type TypeEntry, type TypeKind } from "../../../../common/types/types.ts";
import type { Objects } from "../../../objects/objects.ts";
import { wallClock } from "../../../runtime.ts";
import { DIRECTORY, reach, readTimeoutMs } from "../../../isolate/reach.ts";

/** A type that a request names, and where. */
export interface TypeReference extends NamedType {
  /** The place in the request, such as `creates[3].bucket.type`. */
  field: string;
}

/** A type that a stored row has. */
export interface StoredType {
  kind: TypeKind;
  number: number;
}

/** What could be read of the set. */
interface Reading {
  types: Types;
  /** Present if only types in use could be read, and some of them may be missing. */
  refusalOfOthers?: Refusal;
}

/** The copy of the set in D1. */
interface Copies {
  types(): Promise<Result<TypeSet | undefined>>;
  /** Saves a set, unless there is a newer one. Returns the position of the set that D1 has then. */
  save(set: TypeSet): Promise<Result<number>>;
}

/**
 * An isolate's copy of the set of types. A type in use never changes (T2), so the copy is always right about
 * those, also while the directory is lost or cannot be reached. For all others, the directory is asked (T4).
 */
export class TypesCopy {
  readonly #objects: Pick<Objects, "directory">;
  readonly #limits: Limits;
  readonly #envelope: () => Envelope;
  readonly #copies: Copies;
  #types: Types | undefined;
  #position = -1;
  /** The newest set that a whole directory has answered. */
  #declared: DeclaredTypes | undefined;
  #running: Promise<Result<Reading>> | undefined;

  constructor(objects: Pick<Objects, "directory">, limits: Limits, envelope: () => Envelope, copies: Copies) {
    this.#objects = objects;
    this.#limits = limits;
    this.#envelope = envelope;
    this.#copies = copies;
  }

  /** The set that this copy has, of whatever age. Undefined: none yet. */
  get current(): Types | undefined {
    return this.#types;
  }

  /** The position of the set that this copy has. */
  get position(): number | undefined {
    return this.#types === undefined ? undefined : this.#position;
  }

  /** Keeps a set that the directory has answered, unless it is older than the copy. */
  take(declared: DeclaredTypes): void {
    if (this.#declared === undefined || declared.position > this.#declared.position)
      this.#declared = declared;
    this.#keep(declared);
  }

  #keep({ position, entries }: TypeSet): void {
    if (this.#types !== undefined && position <= this.#position) return;
    this.#types = new Types(entries);
    this.#position = position;
  }

  /** Returns the types for a request that only reads. All types that it names are declared. */
  async forRead(references: readonly TypeReference[]): Promise<Result<Types>> {
    if (this.#types !== undefined && references.every(({ kind, name }) => isInUse(this.#types, kind, name)))
      return ok(this.#types);
    const read = await this.read();
    if (!read.ok) return read;
    const { types, refusalOfOthers } = read.value;
    const unknown = references.find(({ kind, name }) => types.named(kind, name) === undefined);
    if (unknown === undefined) return ok(types);
    return refusalOfOthers === undefined ? undeclared(types, unknown) : unread(unknown, refusalOfOthers);
  }

  /**
   * Marks the types of a begin as in use (T2), once everything else about it is valid. Before that, D1 gets
   * the set: if the directory loses it, it can still get back every type that a claim may have (T6).
   *
   * @param types what `forRead` has answered, with which the begin was made
   */
  async use(types: Types, references: readonly TypeReference[]): Promise<Result<null>> {
    const entries = types.select(references).filter((entry) => !entry.isInUse);
    if (entries.length === 0) return ok(null);
    const copiedAt = await this.#copiedAt();
    if (!copiedAt.ok) return copiedAt;
    const used = await reach(readTimeoutMs(this.#limits), { name: DIRECTORY }, () =>
      this.#objects.directory().useTypes({ ...this.#envelope(), entries, copiedAt: copiedAt.value }),
    );
    if (!used.ok) return used;
    this.take(used.value);
    return ok(null);
  }

  /** Returns the position of the set that D1 has. It is no older than this copy. */
  async #copiedAt(): Promise<Result<number>> {
    const declared = this.#declared;
    if (declared === undefined) return notCopied;
    const saved = await reach(readTimeoutMs(this.#limits), { name: "D1" }, () =>
      this.#copies.save({ position: declared.position, entries: declared.entries }),
    );
    if (saved.ok) return saved;
    // The set that Leasehold ships cannot be lost.
    return declared.declaredAt === 0 ? ok(0) : notCopied;
  }

  /**
   * Returns the types for an answer with these stored types. Rows only have types in use, so a type that the
   * copy doesn't know as such came into use after it was made (T5).
   */
  async forAnswer(stored: readonly StoredType[]): Promise<Result<Types>> {
    const copy = this.#types;
    const isUsed = ({ kind, number }: StoredType): boolean => copy?.numbered(kind, number)?.isInUse === true;
    if (copy !== undefined && stored.every(isUsed)) return ok(copy);
    const read = await this.read();
    if (!read.ok) return read;
    const { types } = read.value;
    if (stored.every(({ kind, number }) => types.numbered(kind, number) !== undefined)) return ok(types);
    return refused("UNAVAILABLE", "the directory does not know a type that a stored row has");
  }

  /**
   * Reads the set. The reading begins after the call, so that the answer has everything that was declared
   * before. Calls during one reading share the next one.
   *
   * A promise that belongs to another request never resolves if that request is cancelled and the runtime
   * drops its work. So each request waits with its own timer, and only briefly before it reads itself.
   */
  async read(): Promise<Result<Reading>> {
    const earlier = this.#running;
    if (earlier === undefined) return this.#start();
    await settled(earlier);
    const later = this.#running;
    const shared = later === undefined || later === earlier ? undefined : await settled(later);
    return shared ?? this.#start();
  }

  #start(): Promise<Result<Reading>> {
    const reading = this.#read().finally(() => {
      if (this.#running === reading) this.#running = undefined;
    });
    this.#running = reading;
    return reading;
  }

  async #read(): Promise<Result<Reading>> {
    const answer = await reach(readTimeoutMs(this.#limits), { name: DIRECTORY }, () =>
      this.#objects.directory().types(this.#envelope()),
    );
    if (!answer.ok) return this.#readInUse(answer.refusal);
    const { isComplete, ...declared } = answer.value;
    if (isComplete) {
      this.take(declared);
      return ok({ types: new Types(declared.entries) });
    }
    const read = await this.#readInUse(lost, declared.entries);
    // Until the directory is reconciled, it would answer the same.
    if (read.ok && this.#types === undefined)
      this.#keep({ position: declared.position, entries: read.value.types.entries });
    return read;
  }

  /**
   * Without a whole directory, the types in use that are left of it and those in D1 serve. They never change,
   * so an old copy of them is right.
   */
  async #readInUse(refusal: Refusal, left?: readonly TypeEntry[]): Promise<Result<Reading>> {
    const copied = await this.#copies.types();
    const copies = copied.ok ? copied.value?.entries : undefined;
    if (left === undefined && copies === undefined) return { ok: false, refusal };
    const entries = new Map<string, TypeEntry>();
    for (const entry of [...(left ?? []), ...(copies ?? [])])
      if (entry.isInUse) entries.set(`${entry.kind} ${entry.name}`, entry);
    return ok({ types: new Types([...entries.values()]), refusalOfOthers: refusal });
  }
}

/** How long a request waits for a reading of another request before it starts its own. */
const PATIENCE_MS = 250;

/** Returns what another request has read, or undefined if that takes too long. */
async function settled(reading: Promise<Result<Reading>>): Promise<Result<Reading> | undefined> {
  const answer = await ask(wallClock, PATIENCE_MS, () => reading);
  return answer.kind === "unknown" ? undefined : reading;
}

const isInUse = (types: Types | undefined, kind: TypeKind, name: string): boolean =>
  types?.named(kind, name)?.isInUse === true;

function undeclared(types: Types, { kind, name, field }: TypeReference): Result<never> {
  const declared = types.names(kind).join(", ");
  return refused(
    "INVALID_ARGUMENT",
    `\`${field}\` must name a declared ${kind} type, and ${name} is none; declared: ${declared}`,
    { field },
  );
}

/** A type that may be declared all the same. */
const unread = ({ field }: TypeReference, refusal: Refusal): Result<never> => ({
  ok: false,
  refusal: { ...refusal, detail: `\`${field}\` names a type that cannot be read: ${refusal.detail}` },
});

const notCopied = refused(
  "UNAVAILABLE",
  "a type can be used for the first time only when D1 has a copy of it, and D1 cannot be reached",
  { retryAfterMs: 1_000 },
);

const lost: Refusal = refused(
  "UNAVAILABLE",
  "the directory has gone back in time, and does not know all types; an operator must reconcile it",
  { reason: "HISTORY_LOST", retryAfterMs: 60_000 },
).refusal;

import { canonicalize } from "../../../../src/common/canonical/canonicalize.ts";
import type {
  ChangeTypes,
  DeclaredTypes,
  TypeSet,
} from "../../../../src/coordinator/capabilities/types/messages.ts";
import type { BucketKey, LookupFound, Op } from "../../../../src/coordinator/kernel/messages.ts";
import type { Refusal } from "../../../../src/coordinator/kernel/refusal.ts";
import type { HoldRow } from "../../../../src/coordinator/kernel/shard/rows.ts";
import {
  isSameType,
  ruleText,
  Types,
  type NamedType,
  type TypeEntry,
} from "../../../../src/common/types/types.ts";
import { shipped } from "../../../support/types.ts";
import type { Sent } from "../network.ts";
import type { Evidence } from "./evidence.ts";
import { factKey } from "./rows.ts";

/** The subject type by which a set is recognized. Each change of the set has another one (`markOf`). */
const MARK = /^CHANGE_\d+$/;

/** A version of the set that was durable. */
interface Version {
  position: number;
  types: Types;
}

/** A request that names types, since it began. */
export interface WatchedRequest {
  /** The first version that the directory had during the request. */
  first: number;
  /** For a lookup: the claim on the name when the lookup began, by the rule that was then in force. */
  claim: { key: BucketKey; uuid: string } | undefined;
}

/**
 * Checks the set of types: what the directory stores, what begins and lookups make of it, and what they are
 * answered. It knows every set that was durable, and by which rule each name was made canonical.
 */
export class TypeWatch {
  readonly #evidence: Evidence;
  readonly #versions: Version[] = [{ position: 0, types: shipped }];
  /** The set in D1. */
  copied: () => TypeSet | null = () => null;
  #diskVersion = -1;
  /** The position on which a change of the set was based, by the mark of the set. */
  readonly #bases = new Map<string, number>();
  /** By lease: how its names were made canonical. */
  readonly #made = new Map<string, readonly { op: Op; entry: TypeEntry }[]>();

  constructor(evidence: Evidence) {
    this.#evidence = evidence;
  }

  /** The durable set. */
  get types(): Types {
    return this.#newest.types;
  }

  get #newest(): Version {
    const newest = this.#versions.at(-1);
    if (newest === undefined) throw new Error("there is always a set of types");
    return newest;
  }

  refresh(): void {
    const { disk } = this.#evidence.coordinator.directory;
    if (disk.version === this.#diskVersion) return;
    this.#diskVersion = disk.version;
    const stored = storedTypes(disk);
    if (stored === undefined || stored.position === this.#newest.position) return;
    const types = new Types(stored.entries);
    this.#checkChange(this.types, types);
    this.#versions.push({ position: stored.position, types });
    this.#checkBase(stored.position, types);
  }

  /** An operator sends a new set. */
  sent({ message }: Sent): void {
    const { position, entries } = message as ChangeTypes;
    const mark = markIn(entries);
    if (mark !== undefined) this.#bases.set(mark, position);
  }

  /** A cell is about to send a begin with these ops. */
  made(cell: string, lease: string, ops: readonly Op[], types: Types): void {
    const made = ops.map((op) => {
      const entry = types.numbered("bucket", op.type);
      if (entry === undefined) throw new Error(`an op has the type ${op.type}, which is not declared`);
      return { op, entry };
    });
    this.#made.set(factKey(cell, lease), [...(this.#made.get(factKey(cell, lease)) ?? []), ...made]);
  }

  /** A shard holds a name. Names of the shipped types are checked elsewhere. */
  held({ cell, lease, bucket_type: number, canonical, subject_type: subject, source_type: source }: HoldRow) {
    if (shipped.numbered("bucket", number) !== undefined) return;
    const entry = this.types.numbered("bucket", number);
    const used = [
      entry,
      ...(subject === null ? [] : [this.types.numbered("subject", subject)]),
      ...(source === null ? [] : [this.types.numbered("source", source)]),
    ];
    this.#evidence.check(
      "I27",
      used.every((each) => each?.isInUse === true),
      () => `${number}:${canonical} is held by lease ${lease} with a type that is not in use`,
    );
    const copied = new Types(this.copied()?.entries ?? []);
    const isCopied = (each: TypeEntry): boolean => {
      if (shipped.named(each.kind, each.name) !== undefined) return true;
      const copy = copied.named(each.kind, each.name);
      return copy !== undefined && isSameType(copy, each);
    };
    this.#evidence.check(
      "I27",
      used.every((each) => each === undefined || isCopied(each)),
      () => `${number}:${canonical} is held by lease ${lease} with a type that D1 does not have`,
    );
    // A removal takes the canonical names from the claims, and makes none.
    if (this.#evidence.removing.has(cell)) return;
    const made = this.#made.get(factKey(cell, lease)) ?? [];
    const its = made.filter(({ op }) => op.type === number && op.canonical === canonical);
    this.#evidence.check(
      "I27",
      its.length > 0 && its.every((each) => entry !== undefined && isSameType(each.entry, entry)),
      () =>
        `${canonical}, held by lease ${lease}, was made canonical as ` +
        `${its.map((each) => textOf(each.entry)).join(", ")}, ` +
        `but the type ${number} is ${entry === undefined ? "not declared" : textOf(entry)}`,
    );
    this.#evidence.see("T1");
  }

  /** A request begins. `value`: the name that a lookup asks for. */
  watch(name?: NamedType, value?: string): WatchedRequest {
    const first = this.#versions.length - 1;
    const entry = name === undefined ? undefined : this.types.named(name.kind, name.name);
    if (entry?.rule == null || value === undefined) return { first, claim: undefined };
    const made = canonicalize(entry.rule, value, this.#evidence.coordinator.limits.valueBytes);
    const key = made.ok ? { type: entry.number, canonical: made.canonical } : undefined;
    const claim = key === undefined ? undefined : this.#evidence.claimOn(key);
    return { first, claim: key && claim && { key, uuid: claim.uuid } };
  }

  /** A request was refused because of a type that it names. */
  refused(
    { first }: WatchedRequest,
    { code, detail, field = "" }: Refusal,
    named: readonly NamedType[],
  ): void {
    if (code !== "INVALID_ARGUMENT") return;
    const during = this.#versions.slice(first);
    const isDeclared = ({ kind, name }: NamedType): boolean =>
      during.every(({ types }) => types.named(kind, name) !== undefined);
    this.#evidence.check(
      "I29",
      !named.every(isDeclared),
      () => `all types were declared all the time, but \`${field}\` was refused: ${detail}`,
    );
  }

  /** A request was not refused because of its types. */
  accepted(): void {
    this.#evidence.check("I29", true, () => "");
  }

  /**
   * A lookup was answered. `shown`: the name of the type in the answer of the API.
   */
  lookedUp(
    { first, claim }: WatchedRequest,
    name: string,
    found: LookupFound,
    shown: string | undefined,
  ): void {
    if (claim === undefined || this.#evidence.claimOn(claim.key)?.uuid !== claim.uuid) return;
    const { type, canonical } = claim.key;
    this.#evidence.check(
      "I30",
      found.kind !== "none",
      () => `${name} ${canonical} was claimed before a lookup, but the lookup answered that it is free`,
    );
    const isSteady = this.#versions
      .slice(first)
      .every(({ types }) => types.numbered("bucket", type)?.isInUse);
    if (found.kind !== "record" || !isSteady) return;
    this.#evidence.check(
      "I30",
      found.record.type === type && (shown === undefined || shown === name),
      () => `a lookup of ${name} ${canonical} answered a name of the type ${shown ?? found.record.type}`,
    );
  }

  /** Checks T2. */
  #checkChange(before: Types, after: Types): void {
    for (const entry of before.entries) {
      if (!entry.isInUse) continue;
      const next = after.named(entry.kind, entry.name);
      this.#evidence.check(
        "I28",
        next?.isInUse === true && isSameType(entry, next),
        () => `${textOf(entry)} is in use, but became ${next === undefined ? "undeclared" : textOf(next)}`,
      );
      this.#evidence.see("T2");
    }
  }

  /** Checks T3: no version lies between a change and the version on which it was based. */
  #checkBase(position: number, types: Types): void {
    const mark = markIn(types.entries);
    const base = mark === undefined ? undefined : this.#bases.get(mark);
    if (base === undefined) return;
    const lost = this.#versions.find(
      (each) => each.position > base && each.position < position && markIn(each.types.entries) !== mark,
    );
    this.#evidence.check(
      "I28",
      lost === undefined,
      () => `${mark} was based on the set at ${base}, but replaced the set at ${lost?.position}`,
    );
    this.#evidence.see("T3");
  }
}

/** The subject type that marks the nth change of the set. */
export const markOf = (change: number): { name: string; number: number } => ({
  name: `CHANGE_${change}`,
  number: 10_000 + change,
});

export const isMark = ({ kind, name }: NamedType): boolean => kind === "subject" && MARK.test(name);

const markIn = (entries: readonly TypeEntry[]): string | undefined => entries.find(isMark)?.name;

const textOf = ({ kind, name, number, rule, isInUse }: TypeEntry): string =>
  `${kind} ${name} ${number} ${ruleText(rule) ?? ""}${isInUse ? " in use" : ""}`;

interface Readable {
  readDurable: <Row>(sql: string, ...bindings: string[]) => Row[];
}

/** The set that the directory has stored. Undefined if none was declared. */
export function storedTypes(disk: Readable): DeclaredTypes | undefined {
  if (disk.readDurable("SELECT 1 FROM sqlite_master WHERE name = 'meta'").length === 0) return undefined;
  const [row] = disk.readDurable<{ value: string }>("SELECT value FROM meta WHERE name = 'types'");
  return row === undefined ? undefined : (JSON.parse(row.value) as DeclaredTypes);
}

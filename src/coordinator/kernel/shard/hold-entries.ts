import type { OpKind } from "../messages.ts";
import { sourceOrder } from "../../../common/source-order.ts";
import { notNull } from "./record.ts";
import { bucketOf, bucketText, type HoldRow } from "./rows.ts";

// How the log stores holds. A row of the log has entries, each with some holds of one execution, and the ends
// of entries: what an execution has held and holds no more. Both are JSON arrays with one item in each line.

/** The most names of an entry, so that its text is always shorter than the text of a row may be. */
export const ENTRY_NAMES = 100;

/** What a hold will make of its claim. 0: it is a destroy. The value is 0 if it is the canonical form. */
type StoredHold =
  | 0
  | [
      kind: 1 | 2,
      uuid: string,
      value: string | 0,
      subjectType: number,
      subjectId: string,
      sourceType: number,
      sourceId: string,
      scope?: string,
    ];

/**
 * Some holds of one execution. `since` is the position at which this shard got them: the epoch of the
 * execution, or for holds that have moved here a position of their own. With `part`, it identifies the entry.
 */
export type StoredEntry = [
  since: number,
  part: number,
  epoch: number,
  /** The shard that granted the holds, if they have moved since (G6). Null: this one. */
  grantedBy: number | null,
  cell: string,
  lease: string,
  incarnation: number,
  counter: number,
  heldAtMs: number,
  /** By `bucketText`. */
  names: string[],
  holds: StoredHold[],
];

/** The names of an entry that are held no more. Without names: all that are left. */
export type StoredEnd = [since: number, part: number, names?: string[]];

const KINDS = { create: 1, replace: 2 } as const;

/** Identifies an entry of a shard. */
export interface EntryId {
  readonly since: number;
  readonly part: number;
}

export function entryOf({ since, part }: EntryId, rows: readonly HoldRow[]): StoredEntry {
  const [first] = rows;
  if (first === undefined) throw new Error("an entry of the log must have a hold");
  return [
    since,
    part,
    first.epoch,
    first.granted_by,
    first.cell,
    first.lease,
    first.incarnation,
    first.counter,
    first.held_at_ms,
    rows.map(nameOf),
    rows.map(storedHold),
  ];
}

function storedHold(row: HoldRow): StoredHold {
  const { kind, uuid, value, canonical, scope } = row;
  if (kind === "destroy") return 0;
  return [
    KINDS[kind],
    notNull(uuid),
    value === canonical ? 0 : notNull(value),
    notNull(row.subject_type),
    notNull(row.subject_id),
    notNull(row.source_type),
    notNull(row.source_id),
    ...(scope === null ? ([] as const) : ([scope] as const)),
  ];
}

/** Returns the name of a hold, as entries have it. */
export const nameOf = ({ bucket_type: type, canonical }: HoldRow): string => bucketText(type, canonical);

/** Returns the scopes that the holds of an entry give to claims. */
export function scopesOf(entry: StoredEntry): readonly string[] {
  const scopes = entry[10].flatMap((hold) => (hold === 0 ? [] : (hold[7] ?? [])));
  return scopes.length === 0 ? NO_SCOPES : [...new Set(scopes)];
}

const NO_SCOPES: readonly string[] = [];

/** Returns the kinds of the holds of an entry, in their order. */
export const kindsOf = (entry: StoredEntry): OpKind[] => entry[10].map(kindOf);

const kindOf = (hold: StoredHold): OpKind =>
  hold === 0 ? "destroy" : hold[0] === KINDS.create ? "create" : "replace";

/** Returns the holds of an entry. */
export const holdRows = (entry: StoredEntry): HoldRow[] => entry[9].map((_, index) => holdRow(entry, index));

/** Returns the hold at an index of an entry. */
export function holdRow(entry: StoredEntry, index: number): HoldRow {
  const [, , epoch, granted_by, cell, lease, incarnation, counter, held_at_ms, names, holds] = entry;
  const key = bucketOf(names[index] ?? "");
  const hold = holds[index] ?? 0;
  const [, uuid, value, subjectType, subjectId, sourceType, sourceId, scope] = hold === 0 ? NOTHING : hold;
  return {
    ...key,
    kind: kindOf(hold),
    cell,
    lease,
    incarnation,
    counter,
    epoch,
    held_at_ms,
    uuid,
    value: value === 0 ? key.canonical : value,
    subject_type: subjectType,
    subject_id: subjectId,
    source_type: sourceType,
    source_id: sourceId,
    source_order: sourceId === null ? null : sourceOrder(sourceId),
    scope: scope ?? null,
    granted_by,
  };
}

const NOTHING = [0, null, null, null, null, null, null, null] as const;

/** Makes a text of the log of items in JSON, in which there are no line breaks. Null: there are none. */
export const textOf = (items: readonly string[]): string | null =>
  items.length === 0 ? null : `[${items.join(BETWEEN)}]`;

const BETWEEN = ",\n";

/** SQLite counts a pair of surrogates as one character. */
const PAIRS = /[\ud800-\udbff]/;

export const itemsOf = <Item>(text: string | null): Item[] =>
  text === null ? [] : (JSON.parse(text) as Item[]);

/** An item of a text, in JSON, and where it is there, in characters as SQLite counts them. */
export interface PlacedItem {
  item: string;
  offset: number;
  length: number;
}

export function placedItemsOf(text: string | null): PlacedItem[] {
  if (text === null) return [];
  const hasPairs = PAIRS.test(text);
  const placed: PlacedItem[] = [];
  for (let from = 1, offset = 1; from < text.length;) {
    const next = text.indexOf(BETWEEN, from);
    const end = next === -1 ? text.length - 1 : next;
    const item = text.slice(from, end);
    const pairs = hasPairs ? item.split(PAIRS).length - 1 : 0;
    const length = end - from - pairs;
    placed.push({ item, offset, length });
    from = end + BETWEEN.length;
    offset += length + BETWEEN.length;
  }
  return placed;
}

/** Returns what identifies an entry. In JSON, it begins with that. */
export const idOf = ({ since, part }: EntryId): string => `${since},${part}`;

/** Returns what identifies an entry that is given in JSON. */
export const idIn = (item: string): string => item.slice(1, item.indexOf(",", item.indexOf(",") + 1));

/** Returns an entry with some of its names: none if nothing would be left. */
export function withNames(entry: StoredEntry, isLeft: (name: string) => boolean): StoredEntry[] {
  const left: StoredEntry = [...entry];
  left[9] = entry[9].filter(isLeft);
  left[10] = entry[10].filter((_, index) => isLeft(entry[9][index] ?? ""));
  return left[9].length === 0 ? [] : [left];
}

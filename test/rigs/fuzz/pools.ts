/**
 * Values that mean something to the server, by field name. They are few, so that requests meet the effects of
 * earlier ones.
 */
import made from "../../coordinator/auth/certificates/made.json" with { type: "json" };
import { documentOf } from "../../../src/common/types/document.ts";
import { shipped } from "../../support/types.ts";

export const uuid = (n: number): string => `0f0f0f0f-0000-4000-8000-${String(n).padStart(12, "0")}`;

/** Part of every generated name, so that a name is recognized anywhere. */
export const NAME_MARK = "fzname";

/** The last one is another name as an email address. */
const spellings = (name: string): string[] => [
  name,
  name.toUpperCase(),
  name.replace("f", "ｆ"),
  name.replace("-", "\u2010"),
];
export const names = Array.from({ length: 10 }, (_, index) => `${NAME_MARK}-${index}`);

/** A name of cell 1 whose claim has replaced another one. */
export const RESPELLED = `${NAME_MARK}-1`;

export const REGISTERED = ["1", "2", "3", "4"];
/**
 * The first number of the UUIDs of leases that are committed, and of those that are granted, one for each
 * registered cell.
 */
export const DECIDED = 0;
export const OUTSTANDING = 10;
/** Cells of which one is ready for each call of a removal: without claims. */
export const REMOVABLE = { approveRemoval: "21", stepRemoval: "22" };
/**
 * Transfers from cell 1 to cell 2, one for each call: the first may be cut, and the others are prepared. Each
 * has a scope of its own, with one claim.
 */
export const TRANSFERS = {
  cutTransfer: uuid(40),
  abortTransfer: uuid(41),
  acceptTransfer: uuid(42),
  reportTransfer: uuid(42),
  getTransfer: uuid(42),
};
/** The scope of all other transfers, in which each registered cell has a claim. */
export const MOVED = "fz-moved";
/** Cells that are never registered. The first one has a key. */
export const UNREGISTERED = ["77", "9223372036854775807"];
/** Cells that a random request may register. */
const SOMETIMES = ["5", "6", "7"];

const { bucket_types, subject_types, source_types } = documentOf(shipped.entries);

/** The lists of the shipped types. */
export const typeLists: Readonly<Record<string, object>> = { bucket_types, subject_types, source_types };

export const pools: Readonly<Record<string, readonly string[]>> = {
  uuid: Array.from({ length: 24 }, (_, n) => (n % 5 === 4 ? uuid(n - 1).toUpperCase() : uuid(n))),
  value: [...names.flatMap(spellings), `${NAME_MARK}/a/b`, `${NAME_MARK}/é`, `${NAME_MARK}@x.example`],
  // Of classifications.
  type: ["FIRST_CELL", "SESSION_PREFIX", "CELL_ID", "UNSPECIFIED"],
  route: [...names.flatMap(spellings), `${NAME_MARK}/a/b`],
  cell: [...REGISTERED, ...REGISTERED, ...SOMETIMES, ...UNREGISTERED],
  from: REGISTERED,
  to: REGISTERED,
  cell_id: [...REGISTERED, ...SOMETIMES, ...SOMETIMES, ...UNREGISTERED],
  id: ["1", "2", "10", "007", "fz-id"],
  scope: ["1", "9970", "fz-scope"],
  source_id_gt: ["1", "2", "fz-id"],
  source_id_lte: ["10", "fz-id"],
  page_size: ["1", "2", "100", "1001", "0001"],
  page_token: [""],
  cursor: [""],
  shard: ["0", "1", "2", "3", "4", "250"],
  // Reached, perhaps reached, and out of reach.
  min_position: ["0:0", "0:0,1:0,2:0,3:0", "0:1,3:1", "1:20,2:30", `3:${Number.MAX_SAFE_INTEGER}`, "4:1"],
  after: ["0", "1", "2", "30", String(Number.MAX_SAFE_INTEGER)],
  address: ["https://cell.example", "http://127.0.0.1:9001/base"],
  url: ["https://hooks.invalid/a", "https://hooks.invalid/b"],
  jwks_url: ["https://forge.invalid/keys", "http://127.0.0.1:9/keys"],
  certificate: made.signed.map(({ authority }) => authority),
  dns: ["cell-1.test"],
  uri: ["spiffe://test/cell-1"],
  reason: ["the cell is gone"],
  // By the ids of their schemas.
  BucketType: shipped.names("bucket"),
  SubjectType: shipped.names("subject"),
  SourceType: shipped.names("source"),
};

/** The largest messages that the limits allow, against what the platform allows. */
import { serialize } from "node:v8";
import { expect, test } from "vitest";
import { AUDIT_PAGE, type AuditPage } from "../../src/coordinator/capabilities/audit/audit.ts";
import { MAX_PATTERN_LENGTH } from "../../src/common/canonical/pattern.ts";
import type { RestoreDirectory, Snapshot } from "../../src/coordinator/kernel/directory/messages.ts";
import type { KeyPage } from "../../src/coordinator/capabilities/keys/messages.ts";
import type { ChangeTypes, DeclaredTypes } from "../../src/coordinator/capabilities/types/messages.ts";
import type { ChangeIdentities } from "../../src/coordinator/capabilities/identities/identities.ts";
import { limitTable, type LimitName } from "../../src/common/limits.ts";
import {
  type BucketKey,
  type ClaimRecord,
  type Decision,
  type Exchange,
  type LookupRequest,
  type Op,
  type Source,
} from "../../src/coordinator/kernel/messages.ts";
import { type Pull, type PullAnswer } from "../../src/coordinator/capabilities/projection/messages.ts";
import {
  type DigestRecordsRequest,
  type ListRecordsAnswer,
} from "../../src/coordinator/capabilities/records/messages.ts";
import {
  MAX_IDENTITIES_BYTES,
  type Identities,
} from "../../src/coordinator/capabilities/identities/identities.ts";
import { MAX_TYPE_NUMBER, MAX_TYPES } from "../../src/common/types/document.ts";
import { TYPE_KINDS } from "../../src/common/types/types.ts";
import { operator, STAMP } from "../support/ops.ts";

/** The platform's limit of a row. */
const ROW_BYTES = 2_000_000;

/** The platform's limit of a message between objects. It serializes with V8, as `serialize` does. */
const MESSAGE_BYTES = 32 * 1024 * 1024;

const max = (name: LimitName): number => limitTable[name].max;
const list = <T>(count: number, make: (n: number) => T): T[] =>
  Array.from({ length: count }, (_, n) => make(n));
/** V8 writes a text of these as one byte per character, so it is as long as in UTF-8. */
const ascii = (bytes: number, n: number): string => String(n).padStart(bytes, "x");
/** V8 writes two bytes per character, but UTF-8 three. */
const han = (characters: number, n: number): string => String(n).padStart(characters, "語");

const envelope = { ...STAMP, placement: "hash1.shards256.canonical1" };
const TIME = 1_800_000_000_000;
const POSITION = TIME * 1_024;
const CELL = "9223372036854775807";
const UUID = "01936f6e-2c1a-7c3e-9d56-3a1f0c9b7e42";
const name = (n: number): BucketKey => ({ type: MAX_TYPE_NUMBER, canonical: ascii(max("valueBytes"), n) });
const source = (n: number): Source => ({ type: MAX_TYPE_NUMBER, id: ascii(max("idBytes"), n) });

const op = (n: number): Op => ({
  ...name(n),
  kind: "replace",
  index: n,
  value: ascii(max("valueBytes"), n),
  subject: source(n),
  source: source(n),
  epoch: POSITION,
  shard: 255,
});

const largestCells = list(max("maxCellIds"), (n) => ({
  cell: CELL,
  name: han(128, n),
  address: han(2_048, n),
  locationHint: "enam",
  createdAtMs: TIME,
  updatedAtMs: TIME,
  removedAtMs: TIME,
}));

/** As many bytes as a document of identities may have, nearly all of them in one certificate. */
const largestIdentities: Identities = {
  issuers: [],
  authorities: [
    { name: ascii(64, 0), certificate: ascii(MAX_IDENTITIES_BYTES, 0), expiresAtMs: TIME, rules: [] },
  ],
};

/** No set of types is larger. */
const largestTypes: DeclaredTypes = {
  position: POSITION,
  declaredAt: POSITION,
  entries: TYPE_KINDS.flatMap((kind) =>
    list(MAX_TYPES, (n) => ({
      kind,
      number: MAX_TYPE_NUMBER - n,
      name: ascii(64, n).toUpperCase(),
      rule: {
        form: "plain" as const,
        script: "single" as const,
        case: "folded" as const,
        pattern: han(MAX_PATTERN_LENGTH, n),
        minLength: 65_535,
        maxLength: 65_536,
      },
      isInUse: true,
    })),
  ),
};

const record = (n: number): ClaimRecord => ({
  ...name(n),
  uuid: UUID,
  value: ascii(max("valueBytes"), n),
  subject: source(n),
  source: source(n),
  scope: ascii(max("idBytes"), n),
  cell: CELL,
  epoch: POSITION,
  status: "LEASE_DESTROYING",
  lease: UUID,
  createdAtMs: TIME,
  updatedAtMs: TIME,
});

const point = { incarnation: POSITION, position: POSITION };
/** What every exchange has besides its decisions and prepares. */
const sender = { ...envelope, seen: point, cell: CELL, point, confirmed: point };

const holder = { cell: CELL, lease: UUID, incarnation: POSITION, counter: POSITION };
const messageOps = max("messageOps");
const messages: Record<string, unknown> = {
  "an exchange of one prepare": {
    ...sender,
    decisions: [],
    prepares: [{ ...holder, ops: list(Math.max(messageOps, max("batchOps")), op), allowMissing: true }],
  } satisfies Exchange,
  "an exchange of small prepares": {
    ...sender,
    decisions: [],
    prepares: list(messageOps, (n) => ({ ...holder, ops: [op(n)], allowMissing: true })),
  } satisfies Exchange,
  "an exchange of small decisions": {
    ...sender,
    decisions: list(messageOps, (n): Decision => ({
      ...holder,
      outcome: "ROLLED_BACK",
      epoch: POSITION,
      keys: [name(n)],
    })),
    prepares: [],
  } satisfies Exchange,
  "a lookup": { ...envelope, keys: list(max("lookupBuckets"), name) } satisfies LookupRequest,
  "a page of records": {
    records: list(max("maxPageItems"), record),
    next: null,
  } satisfies ListRecordsAnswer,
  "a request for digests": {
    ...envelope,
    cell: CELL,
    sourceType: MAX_TYPE_NUMBER,
    bucketTypes: list(MAX_TYPES, (n) => MAX_TYPE_NUMBER - n),
    cursor: null,
    ranges: list(max("digestRanges"), (n) => ({ after: ascii(200, n), upTo: ascii(200, n + 1) })),
  } satisfies DigestRecordsRequest,
  "a request for a pull": {
    ...envelope,
    after: POSITION,
    through: POSITION,
    has: list(max("pullRows"), () => [POSITION, UUID]),
    limit: max("pullRows"),
  } satisfies Pull,
  "a page of a pull": {
    point: { incarnation: POSITION, position: POSITION },
    granted: list(max("pullRows"), () => ({
      lease: UUID,
      createdPosition: POSITION,
      createdAtMs: TIME,
      counts: { creates: 5_000, destroys: 5_000, replaces: 5_000, missing: 5_000 },
    })),
    decided: list(max("pullRows"), () => POSITION),
    through: POSITION,
    directory: { incarnation: POSITION, position: POSITION },
  } satisfies PullAnswer,
  "the directory": {
    placement: envelope.placement,
    point: { incarnation: POSITION, position: POSITION },
    growth: null,
    isPlaced: true,
    cells: largestCells,
    revokedKeys: list(max("maxRevokedKeys"), (n) => ascii(36, n)),
    revokedThroughMs: TIME,
    types: largestTypes,
    identities: { ...largestIdentities, position: POSITION },
  } satisfies Snapshot,
  "a change of the set of types": {
    ...envelope,
    ...largestTypes,
    operator: { keyId: ascii(64, 0), requestId: ascii(36, 0), reason: han(max("reasonBytes"), 0) },
    copiedAt: POSITION,
  } satisfies ChangeTypes,
  "a change of the identities": {
    ...envelope,
    operator: { keyId: ascii(64, 0), requestId: ascii(36, 0), reason: han(max("reasonBytes"), 0) },
    position: POSITION,
    identities: largestIdentities,
  } satisfies ChangeIdentities,
  "a page of audit entries": {
    entries: list(AUDIT_PAGE, (n) => {
      const state = JSON.stringify({ name: han(128, n), address: han(2_048, n), location_hint: "enam" });
      return {
        id: UUID,
        atMs: TIME,
        keyId: ascii(64, n),
        requestId: UUID,
        action: "change_cell" as const,
        cell: CELL,
        target: CELL,
        reason: han(Math.floor(max("reasonBytes") / 3), n),
        before: state,
        after: state,
      };
    }),
    more: true,
  } satisfies AuditPage,
  "a page of keys": {
    point: { incarnation: POSITION, position: POSITION },
    keys: list(max("pullRows"), (n) => ({
      keyId: ascii(36, n),
      position: POSITION,
      role: "operator" as const,
      cell: CELL,
      note: han(256, n),
      createdAtMs: TIME,
      expiresAtMs: TIME,
      revokedAtMs: TIME,
    })),
    more: true,
  } satisfies KeyPage,
  "the copies of cells and types for a reconciliation": {
    ...envelope,
    cells: largestCells,
    keys: [],
    types: largestTypes,
    isLast: false,
    dryRun: false,
    declared: { incarnation: POSITION },
    isPlacementConfirmed: true,
    operator: { ...operator, reason: ascii(max("reasonBytes"), 0) },
  } satisfies RestoreDirectory,
};

test.each(Object.keys(messages))("[M6] no limit allows %s of more than 32 MiB", (what) => {
  const bytes = serialize(messages[what]).length;
  expect(bytes).toBeGreaterThan(100_000);
  expect(bytes).toBeLessThan(MESSAGE_BYTES);
});

test("[M6] [T6] the largest set of types fits into a row of the directory, and of D1", () => {
  expect(new TextEncoder().encode(JSON.stringify(largestTypes)).length).toBeLessThan(ROW_BYTES);
});

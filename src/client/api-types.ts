// Made from the contract in src/http by `npm run generate:client`; do not edit.

/** All or nothing. No name may appear twice, in one list or in two. */
export interface Batch {
  /** Names to take. Each must be free. */
  creates?: readonly {
    bucket: Bucket;
    subject: SubjectGiven;
    source: SourceGiven;
  }[] | undefined;
  /** Names to give up. Each must be yours; subject, source and epoch are compared when given. */
  destroys?: readonly ({
    bucket: Bucket;
    subject?: SubjectGiven | undefined;
    source?: SourceGiven | undefined;
    /** Of the claim as it was read: a claim of another epoch is a `mismatch`. */
    epoch?: number | undefined;
  })[] | undefined;
  /** Names that stay yours and get a new subject, source or spelling. Commit swaps them at once. */
  replaces?: readonly ({
    bucket: Bucket;
    subject: SubjectGiven;
    source: SourceGiven;
    /** Of the claim as it was read: a claim of another epoch is a `mismatch`. */
    epoch?: number | undefined;
  })[] | undefined;
  /** Destroys of names that nobody has are counted instead of refused. */
  allow_missing?: boolean | undefined;
}

/** The thing that must be unique. */
export interface Bucket {
  /** What kind of name it is. */
  type: "ROUTES" | "ORGANIZATION_PATH" | "REDIRECT_ROUTES" | "USERNAMES" | "EMAILS" | "PROJECT_IDS" | "USER_IDS";
  /** As typed. 1 to 1,024 bytes of UTF-8, typed and canonical. */
  value: string;
}

export interface Cell {
  /** A cell: a decimal int64 above 0. */
  cell_id: string;
  name: string;
  address: string;
  location_hint: string | null;
  /** FROZEN: begins are refused, all else works. Null when its ledger cannot be reached. */
  state: "ACTIVE" | "FROZEN" | null;
  /** Granted and not decided. Null when its ledger cannot be reached. */
  outstanding_leases: number | null;
  /** Decisions that some shard has not applied yet. Null when its ledger cannot be reached. */
  unapplied_decisions: number | null;
  /** RFC 3339, UTC, milliseconds. */
  created_at: string;
  /** RFC 3339, UTC, milliseconds. */
  updated_at: string;
}

export interface CellChange {
  /** For people. */
  name?: string | undefined;
  /** Where routers send the requests of this cell: an http or https URL. */
  address?: string | undefined;
}

/** One op of the batch that stands in the way. The other cell is never named. */
export interface Conflict {
  list: "creates" | "destroys" | "replaces";
  index: number;
  bucket: Bucket;
  /** `leased` passes; the others stay until somebody changes the claim. */
  kind: "leased" | "taken" | "not_owner" | "absent" | "mismatch";
  owner?: "self" | "other" | undefined;
  retry_after_ms?: number | undefined;
}

export interface Decision {
  /** Operators only, and they must: why. Kept with the outcome. */
  reason?: string | undefined;
}

export interface DigestQuery {
  /** The cell's table that the name came from. */
  source_type: "RAILS_TABLE_USERS" | "RAILS_TABLE_EMAILS" | "RAILS_TABLE_ROUTES" | "RAILS_TABLE_PROJECTS" | "RAILS_TABLE_GROUPS" | "RAILS_TABLE_ORGANIZATIONS" | "RAILS_TABLE_REDIRECT_ROUTES";
  /** Only these bucket types; left out: all. */
  bucket_types?: readonly ("ROUTES" | "ORGANIZATION_PATH" | "REDIRECT_ROUTES" | "USERNAMES" | "EMAILS" | "PROJECT_IDS" | "USER_IDS")[] | undefined;
  /** In order, and none begins before the end of the one before it. */
  ranges: readonly SourceRange[];
}

/** A line of an export. One whose last line is neither an `end` nor an `error` was broken off. */
export type ExportLine = {
  /** The first line: when the reading began, by the coordinator's clock. */
  as_of: string;
} | {
  record: Record;
  /** The last source id that is complete with this line. Give it as `source_id_gt` to go on; empty: there is none yet, and that begins anew. */
  cursor: string;
} | {
  /** The last line: there are no more records. */
  end: "complete";
} | {
  /** The last line: there may be more behind `cursor`, which another call gives. */
  end: "continue";
  cursor: string;
} | {
  error: Problem;
};

/** What a cell learns of another cell's record. */
export interface ForeignRecord {
  bucket: Bucket;
  /** A cell: a decimal int64 above 0. */
  cell_id: string;
  status: "ACTIVE" | "LEASE_CREATING" | "LEASE_DESTROYING";
}

/** What is remembered of a key; not the key itself. */
export interface Key {
  id: string;
  role: "cell" | "router" | "operator";
  cell_id: string | null;
  /** RFC 3339, UTC, milliseconds. */
  created_at: string;
  /** RFC 3339, UTC, milliseconds. */
  expires_at: string;
  note: string | null;
  revoked_at: string | null;
}

/** One batch of one cell, all or nothing. */
export interface Lease {
  uuid: string;
  /** A cell: a decimal int64 above 0. */
  cell_id: string;
  state: "GRANTED" | "COMMITTED" | "ROLLED_BACK";
  /** RFC 3339, UTC, milliseconds. */
  created_at: string;
  /** How old the lease was when this was answered, by the clock of its ledger. */
  age_ms: number;
  /** RFC 3339, UTC, milliseconds. */
  decided_at?: string | undefined;
  /** Whose decision it was. */
  decided_by?: "cell" | "operator" | undefined;
  /** The operator's reason. */
  reason?: string | undefined;
  counts: LeaseCounts;
  /** While GRANTED, and not in listings. */
  creates?: readonly {
    bucket: Bucket;
    subject: Subject;
    source: Source;
  }[] | undefined;
  /** While GRANTED, and not in listings. */
  destroys?: readonly ({
    bucket: Bucket;
    subject?: Subject | undefined;
    source?: Source | undefined;
    /** Of the claim as it was read: a claim of another epoch is a `mismatch`. */
    epoch?: number | undefined;
  })[] | undefined;
  /** While GRANTED, and not in listings. */
  replaces?: readonly ({
    bucket: Bucket;
    subject: Subject;
    source: Source;
    /** Of the claim as it was read: a claim of another epoch is a `mismatch`. */
    epoch?: number | undefined;
  })[] | undefined;
}

export interface LeaseCounts {
  creates: number;
  destroys: number;
  replaces: number;
  /** Destroys of names that nobody had. */
  missing: number;
}

export interface Limit {
  name: string;
  value: number;
  default: number;
  unit: string;
  /** Set it on the deployment to change the limit. */
  variable: string;
  about: string;
}

export interface Lookup {
  buckets: readonly Bucket[];
}

/** `record` and `cell` are there when it was found. */
export interface LookupResult {
  bucket: Bucket;
  found: boolean;
  record?: Record | ForeignRecord | undefined;
  cell?: OwnerCell | undefined;
}

export interface MintedKey {
  id: string;
  role: "cell" | "router" | "operator";
  cell_id: string | null;
  /** RFC 3339, UTC, milliseconds. */
  created_at: string;
  /** RFC 3339, UTC, milliseconds. */
  expires_at: string;
  note: string | null;
  /** The key itself. It is shown once and stored nowhere. */
  key: string;
}

export interface NewCell {
  /** A cell: a decimal int64 above 0. */
  cell_id: string | number;
  /** For people. */
  name: string;
  /** Where routers send the requests of this cell: an http or https URL. */
  address: string;
  /** Where the cell's ledger is made, once and for all: near the cell. */
  location_hint?: "wnam" | "enam" | "sam" | "weur" | "eeur" | "apac" | "apac-ne" | "apac-se" | "oc" | "afr" | "me" | undefined;
}

export interface NewKey {
  role: "cell" | "router" | "operator";
  /** For the role `cell`, and only for it. */
  cell_id?: string | number | undefined;
  /** Up to 34560000 (400 days). Left out: 90 days. */
  expires_in_s?: number | undefined;
  /** What it is for. */
  note?: string | undefined;
}

/** The cell that owns the name. */
export interface OwnerCell {
  /** A cell: a decimal int64 above 0. */
  id: string;
  /** Where to send requests for this name. */
  address: string;
}

/** RFC 9457. Every 4xx and 5xx answer is one. */
export interface Problem {
  /** Where the reference explains the code. */
  type: string;
  title: string;
  status: number;
  detail: string;
  code: "INVALID_ARGUMENT" | "UNAUTHENTICATED" | "PERMISSION_DENIED" | "NOT_FOUND" | "ALREADY_EXISTS" | "FAILED_PRECONDITION" | "ABORTED" | "RESOURCE_EXHAUSTED" | "INTERNAL" | "UNAVAILABLE" | "DEADLINE_EXCEEDED";
  /** Finer than the code, where a caller may act on it. */
  reason?: string | undefined;
  /** What is wrong in the request, such as `creates[3].bucket.value`. */
  field?: string | undefined;
  /** Whether the same call may succeed later, unchanged. */
  retryable: boolean;
  request_id: string;
  /** Every op that stands in the way, not just the first. */
  conflicts?: readonly Conflict[] | undefined;
  /** Of a begin whose outcome is not known: repeat it with PUT and this id. */
  lease_uuid?: string | undefined;
  /** In the last line of an export, which has no `Retry-After`. */
  retry_after_ms?: number | undefined;
  /** The parts that are not ready. */
  failed?: readonly string[] | undefined;
}

/** What a range of a cell's claims adds up to. */
export interface RangeDigest {
  /** Claims in the range. */
  count: number;
  /** 32 hexadecimal digits: the digests of the claims, added up in four lanes modulo 2^32. */
  hash: string;
  /** A lease touches the range, or a claim in it has no digest: it proves nothing. */
  held: boolean;
  /** Of its claims; null: there are none. */
  newest_updated_at: string | null;
}

/** Permanent ownership of a name by a cell. */
export interface Record {
  uuid: string;
  bucket: Bucket;
  subject: Subject;
  source: Source;
  /** A cell: a decimal int64 above 0. */
  cell_id: string;
  /** Larger for every later owner of the name. */
  epoch: number;
  status: "ACTIVE" | "LEASE_CREATING" | "LEASE_DESTROYING";
  /** The lease that holds the name at the moment. */
  lease_uuid: string | null;
  /** RFC 3339, UTC, milliseconds. */
  created_at: string;
  /** RFC 3339, UTC, milliseconds. */
  updated_at: string;
}

export interface Revocation {
  /** The cell of a key that was never listed here, so that its ledger learns of it. */
  cell_id?: string | number | undefined;
}

/** The row the name came from. */
export interface Source {
  /** The cell's table that the name came from. */
  type: "RAILS_TABLE_USERS" | "RAILS_TABLE_EMAILS" | "RAILS_TABLE_ROUTES" | "RAILS_TABLE_PROJECTS" | "RAILS_TABLE_GROUPS" | "RAILS_TABLE_ORGANIZATIONS" | "RAILS_TABLE_REDIRECT_ROUTES";
  id: string;
}

/** The row the name came from. */
export interface SourceGiven {
  /** The cell's table that the name came from. */
  type: "RAILS_TABLE_USERS" | "RAILS_TABLE_EMAILS" | "RAILS_TABLE_ROUTES" | "RAILS_TABLE_PROJECTS" | "RAILS_TABLE_GROUPS" | "RAILS_TABLE_ORGANIZATIONS" | "RAILS_TABLE_REDIRECT_ROUTES";
  /** 1 to 128 bytes of UTF-8 without control characters, or a safe integer. */
  id: string | number;
}

/** Of source ids, in the order of the listing: decimal ids as numbers, before all others. */
export interface SourceRange {
  /** Only source ids after this one. */
  source_id_gt?: string | number | undefined;
  /** Only source ids up to this one. */
  source_id_lte?: string | number | undefined;
}

export interface StaleLease {
  uuid: string;
  /** A cell: a decimal int64 above 0. */
  cell_id: string;
  state: "GRANTED" | "COMMITTED" | "ROLLED_BACK";
  /** RFC 3339, UTC, milliseconds. */
  created_at: string;
  /** How old the lease was when this was answered, by the clock of its ledger. */
  age_ms: number;
  /** RFC 3339, UTC, milliseconds. */
  decided_at?: string | undefined;
  /** Whose decision it was. */
  decided_by?: "cell" | "operator" | undefined;
  /** The operator's reason. */
  reason?: string | undefined;
  counts: LeaseCounts;
  /** While GRANTED, and not in listings. */
  creates?: readonly {
    bucket: Bucket;
    subject: Subject;
    source: Source;
  }[] | undefined;
  /** While GRANTED, and not in listings. */
  destroys?: readonly ({
    bucket: Bucket;
    subject?: Subject | undefined;
    source?: Source | undefined;
    /** Of the claim as it was read: a claim of another epoch is a `mismatch`. */
    epoch?: number | undefined;
  })[] | undefined;
  /** While GRANTED, and not in listings. */
  replaces?: readonly ({
    bucket: Bucket;
    subject: Subject;
    source: Source;
    /** Of the claim as it was read: a claim of another epoch is a `mismatch`. */
    epoch?: number | undefined;
  })[] | undefined;
  /** False: its ledger could not be asked whether it is still granted. */
  confirmed: boolean;
}

/** Whom the name is about. */
export interface Subject {
  /** What the name is about. */
  type: "ORGANIZATION" | "GROUP" | "PROJECT" | "USER";
  id: string;
}

/** Whom the name is about. */
export interface SubjectGiven {
  /** What the name is about. */
  type: "ORGANIZATION" | "GROUP" | "PROJECT" | "USER";
  /** 1 to 128 bytes of UTF-8 without control characters, or a safe integer. */
  id: string | number;
}

/** Leave to verify a cell now. */
export interface VerificationSlot {
  uuid: string;
  /** A cell: a decimal int64 above 0. */
  cell_id: string;
  /** RFC 3339, UTC, milliseconds. */
  expires_at: string;
  /** From this answer on, by the clock of the directory. */
  expires_in_ms: number;
}

/** Every operation: what it takes in its body, and what it answers. */
export interface Operations {
  beginLease: { body: Batch; answer: {
    lease: Lease;
  } };
  getLease: { body: undefined; answer: {
    lease: Lease;
  } };
  listLeases: { body: undefined; answer: {
    leases: readonly Lease[];
    /** To get the next page; empty on the last one. */
    next_page_token: string;
  } };
  commitLease: { body: Decision | undefined; answer: {
    lease: Lease;
  } };
  rollbackLease: { body: Decision | undefined; answer: {
    lease: Lease;
  } };
  getRecord: { body: undefined; answer: {
    record: Record | ForeignRecord;
    cell: OwnerCell;
  } };
  lookupRecords: { body: Lookup; answer: {
    results: readonly LookupResult[];
  } };
  listRecords: { body: undefined; answer: {
    /** When the reading began, by the coordinator's clock. RFC 3339, UTC, milliseconds. */
    as_of: string;
    records: readonly Record[];
    /** To get the next page; empty on the last one. */
    next_page_token: string;
  } };
  exportRecords: { body: undefined; answer: ExportLine };
  digestRecords: { body: DigestQuery; answer: {
    /** When the reading began, by the coordinator's clock. RFC 3339, UTC, milliseconds. */
    as_of: string;
    /** One for each range, in order. */
    digests: readonly RangeDigest[];
  } };
  takeVerificationSlot: { body: undefined; answer: {
    slot: VerificationSlot;
  } };
  releaseVerificationSlot: { body: undefined; answer: {
    /** Whether it had one until now. */
    released: boolean;
  } };
  listCells: { body: undefined; answer: {
    cells: readonly Cell[];
    /** To get the next page; empty on the last one. */
    next_page_token: string;
  } };
  addCell: { body: NewCell; answer: {
    cell: Cell;
  } };
  changeCell: { body: CellChange; answer: {
    cell: Cell;
  } };
  freezeCell: { body: undefined; answer: {
    cell: Cell;
  } };
  unfreezeCell: { body: undefined; answer: {
    cell: Cell;
  } };
  mintKey: { body: NewKey; answer: MintedKey };
  listKeys: { body: undefined; answer: {
    keys: readonly Key[];
    /** To get the next page; empty on the last one. */
    next_page_token: string;
  } };
  revokeKey: { body: Revocation | undefined; answer: {
    key: Key;
  } };
  listStaleLeases: { body: undefined; answer: {
    leases: readonly StaleLease[];
    /** When the fleet record was last brought up to date; null: never. */
    last_pulled_at: string | null;
    /** To get the next page; empty on the last one. */
    next_page_token: string;
  } };
  listLimits: { body: undefined; answer: {
    limits: readonly Limit[];
  } };
  getHealth: { body: undefined; answer: {
    status: "ok";
    version: string;
    /** What decides who owns a name: the same on every machine, for good. */
    placement: string;
  } };
  getReadiness: { body: undefined; answer: {
    status: "ok";
    d1: "up" | "down";
  } };
}

/** Every operation's route, and the least that its answer must hold. */
export const operations = {
  beginLease: { method: "PUT", path: "/v1/cells/{cell}/leases/{uuid}", shape: {"lease":{"uuid":"string","cell_id":"string","state":"string","created_at":"string","age_ms":"number","counts":{"creates":"number","destroys":"number","replaces":"number","missing":"number"}}} },
  getLease: { method: "GET", path: "/v1/cells/{cell}/leases/{uuid}", shape: {"lease":{"uuid":"string","cell_id":"string","state":"string","created_at":"string","age_ms":"number","counts":{"creates":"number","destroys":"number","replaces":"number","missing":"number"}}} },
  listLeases: { method: "GET", path: "/v1/cells/{cell}/leases", shape: {"leases":[{"uuid":"string","cell_id":"string","state":"string","created_at":"string","age_ms":"number","counts":{"creates":"number","destroys":"number","replaces":"number","missing":"number"}}],"next_page_token":"string"} },
  commitLease: { method: "POST", path: "/v1/cells/{cell}/leases/{uuid}/commit", shape: {"lease":{"uuid":"string","cell_id":"string","state":"string","created_at":"string","age_ms":"number","counts":{"creates":"number","destroys":"number","replaces":"number","missing":"number"}}} },
  rollbackLease: { method: "POST", path: "/v1/cells/{cell}/leases/{uuid}/rollback", shape: {"lease":{"uuid":"string","cell_id":"string","state":"string","created_at":"string","age_ms":"number","counts":{"creates":"number","destroys":"number","replaces":"number","missing":"number"}}} },
  getRecord: { method: "GET", path: "/v1/records/{bucket_type}/{value}", shape: {"record":"any","cell":{"id":"string","address":"string"}} },
  lookupRecords: { method: "POST", path: "/v1/records/lookup", shape: {"results":[{"bucket":{"type":"string","value":"string"},"found":"boolean"}]} },
  listRecords: { method: "GET", path: "/v1/cells/{cell}/records", shape: {"as_of":"string","records":[{"uuid":"string","bucket":{"type":"string","value":"string"},"subject":{"type":"string","id":"string"},"source":{"type":"string","id":"string"},"cell_id":"string","epoch":"number","status":"string","lease_uuid":"any","created_at":"string","updated_at":"string"}],"next_page_token":"string"} },
  exportRecords: { method: "GET", path: "/v1/cells/{cell}/records/export", shape: "any" },
  digestRecords: { method: "POST", path: "/v1/cells/{cell}/records/digests", shape: {"as_of":"string","digests":[{"count":"number","hash":"string","held":"boolean","newest_updated_at":"any"}]} },
  takeVerificationSlot: { method: "PUT", path: "/v1/cells/{cell}/verification-slots/{uuid}", shape: {"slot":{"uuid":"string","cell_id":"string","expires_at":"string","expires_in_ms":"number"}} },
  releaseVerificationSlot: { method: "POST", path: "/v1/cells/{cell}/verification-slots/{uuid}/release", shape: {"released":"boolean"} },
  listCells: { method: "GET", path: "/v1/admin/cells", shape: {"cells":[{"cell_id":"string","name":"string","address":"string","location_hint":"any","state":"any","outstanding_leases":"any","unapplied_decisions":"any","created_at":"string","updated_at":"string"}],"next_page_token":"string"} },
  addCell: { method: "POST", path: "/v1/admin/cells", shape: {"cell":{"cell_id":"string","name":"string","address":"string","location_hint":"any","state":"any","outstanding_leases":"any","unapplied_decisions":"any","created_at":"string","updated_at":"string"}} },
  changeCell: { method: "PATCH", path: "/v1/admin/cells/{cell}", shape: {"cell":{"cell_id":"string","name":"string","address":"string","location_hint":"any","state":"any","outstanding_leases":"any","unapplied_decisions":"any","created_at":"string","updated_at":"string"}} },
  freezeCell: { method: "POST", path: "/v1/admin/cells/{cell}/freeze", shape: {"cell":{"cell_id":"string","name":"string","address":"string","location_hint":"any","state":"any","outstanding_leases":"any","unapplied_decisions":"any","created_at":"string","updated_at":"string"}} },
  unfreezeCell: { method: "POST", path: "/v1/admin/cells/{cell}/unfreeze", shape: {"cell":{"cell_id":"string","name":"string","address":"string","location_hint":"any","state":"any","outstanding_leases":"any","unapplied_decisions":"any","created_at":"string","updated_at":"string"}} },
  mintKey: { method: "POST", path: "/v1/admin/keys", shape: {"id":"string","role":"string","cell_id":"any","created_at":"string","expires_at":"string","note":"any","key":"string"} },
  listKeys: { method: "GET", path: "/v1/admin/keys", shape: {"keys":[{"id":"string","role":"string","cell_id":"any","created_at":"string","expires_at":"string","note":"any","revoked_at":"any"}],"next_page_token":"string"} },
  revokeKey: { method: "POST", path: "/v1/admin/keys/{id}/revoke", shape: {"key":{"id":"string","role":"string","cell_id":"any","created_at":"string","expires_at":"string","note":"any","revoked_at":"any"}} },
  listStaleLeases: { method: "GET", path: "/v1/leases/stale", shape: {"leases":[{"uuid":"string","cell_id":"string","state":"string","created_at":"string","age_ms":"number","counts":{"creates":"number","destroys":"number","replaces":"number","missing":"number"},"confirmed":"boolean"}],"last_pulled_at":"any","next_page_token":"string"} },
  listLimits: { method: "GET", path: "/v1/limits", shape: {"limits":[{"name":"string","value":"number","default":"number","unit":"string","variable":"string","about":"string"}]} },
  getHealth: { method: "GET", path: "/healthz", shape: {"status":"string","version":"string","placement":"string"} },
  getReadiness: { method: "GET", path: "/readyz", shape: {"status":"string","d1":"string"} },
} as const;

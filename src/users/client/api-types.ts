// Generated from src/coordinator/api/contract by `npm run generate:client`. Do not edit.

import type { DeclaredNames } from "./declared-types.ts";

/** A change that an operator made. */
export interface AuditEntry {
  id: string;
  /** RFC 3339, in UTC, with milliseconds. */
  at: string;
  /** The key that the operator used. */
  key_id: string;
  /** What the key is for. Null: it has no note, or was made offline. */
  key_note: string | null;
  /** What the operator did. */
  action:
    | "add_cell"
    | "change_cell"
    | "freeze_cell"
    | "drain_cell"
    | "undrain_cell"
    | "start_removal"
    | "remove_cell"
    | "unfreeze_cell"
    | "mint_key"
    | "revoke_key"
    | "change_types"
    | "change_identities"
    | "start_growth"
    | "cut_growth"
    | "abort_growth"
    | "start_restore"
    | "end_restore"
    | "finish_upgrade"
    | "begin_lease"
    | "commit_lease"
    | "rollback_lease"
    | "prepare_transfer"
    | "accept_transfer"
    | "report_transfer"
    | "cut_transfer"
    | "abort_transfer"
    | "reconcile_part"
    | "finish_part"
    | "erase_history"
    | "add_webhook"
    | "change_webhook"
    | "remove_webhook"
    | "test_webhook";
  /** The cell that the change is about. Null: none. */
  cell_id: string | null;
  /** What was changed: a cell, a key, a lease or a part by its id, a name by its hash, or `types`. */
  target: string;
  /** The part that made the change: `directory`, `ledger-7` or `shard-3`. */
  part: string;
  /** Why, as the operator said. Null: not said. */
  reason: string | null;
  /** The id of the request in the log. */
  request_id: string;
  /** What is kept of the state, without secrets. Null: there was none. */
  before: { readonly [name: string]: unknown } | null;
  /** What is kept of the state, without secrets. Null: there was none. */
  after: { readonly [name: string]: unknown } | null;
}

export interface AuthorityExpiry {
  /** A name that people read, unique in its list. */
  name: string;
  /** RFC 3339, in UTC, with milliseconds. */
  expires_at: string;
}

/**
 * The ops of one lease: all of them are granted, or none. It must have at least one op, and no name
 * twice.
 */
export interface Batch {
  /** Names to take. Each name must be free. */
  creates?:
    | readonly {
        bucket: Bucket;
        subject: SubjectGiven;
        source: SourceGiven;
        /**
         * What the claim belongs to, such as the id of an organization. A transfer moves the names of one
         * scope. Left out: the claim has none.
         */
        scope?: string | number | undefined;
      }[]
    | undefined;
  /**
   * Names to give up. Each name must belong to the cell. Subject, source and epoch are compared with the
   * claim if given.
   */
  destroys?:
    | readonly {
        bucket: Bucket;
        subject?: SubjectGiven | undefined;
        source?: SourceGiven | undefined;
        /**
         * The `epoch` of the record that the op is based on. If the claim has another epoch, the op is
         * refused as a `mismatch`. Left out: the op applies to the claim as it is.
         */
        epoch?: number | undefined;
      }[]
    | undefined;
  /**
   * Names of the cell that get a new subject, source, scope or spelling. The name is never free in
   * between.
   */
  replaces?:
    | readonly {
        bucket: Bucket;
        subject: SubjectGiven;
        source: SourceGiven;
        /**
         * What the claim belongs to, such as the id of an organization. A transfer moves the names of one
         * scope. Left out: the claim has none.
         */
        scope?: string | number | undefined;
        /**
         * The `epoch` of the record that the op is based on. If the claim has another epoch, the op is
         * refused as a `mismatch`. Left out: the op applies to the claim as it is.
         */
        epoch?: number | undefined;
      }[]
    | undefined;
  /**
   * If true, destroys of names without a claim are counted in `counts.missing`, replaces of them without
   * `epoch` claim them, and the batch may be empty. Otherwise all these are refused.
   */
  allow_missing?: boolean | undefined;
  /**
   * If true, a verification of the cell makes this begin. While a shard is reconciled, it grants no
   * others.
   */
  verification?: boolean | undefined;
  /**
   * How long the begin may wait for names that are leased, instead of being refused at once: first come,
   * first served. It holds nothing while it waits. If the time ends first, or too many others wait, it is
   * refused as without it. At most 30,000 by default (`begin_wait_ms`). Left out or 0: it doesn't wait.
   * It is no part of the batch, so a repeated call may have another value.
   */
  wait_ms?: number | undefined;
}

/** The thing that must be unique: a type and a value. */
export interface Bucket {
  type: BucketType;
  /** The name as somebody typed it. It and its canonical form have 1 to 1,024 bytes of UTF-8. */
  value: string;
}

/** The kind of name. The same value in two bucket types is two names. */
export type BucketType = DeclaredNames<
  "bucket_types",
  | "ROUTES"
  | "ORGANIZATION_PATH"
  | "REDIRECT_ROUTES"
  | "USERNAMES"
  | "EMAILS"
  | "PROJECT_IDS"
  | "NAMESPACE_IDS"
  | "GPG_KEYS"
  | "SSH_KEYS"
  | "USER_IDS"
  | "ORGANIZATION_IDS"
  | "SERVICE_DESK_CUSTOM_EMAILS"
  | "GPG_KEY_FINGERPRINTS"
  | "SERVICE_DESK_PROJECT_KEY_ADDRESS_SLUGS"
  | "SSH_KEY_FINGERPRINTS"
  | "SNIPPET_IDS"
  | "PAGES_DOMAINS"
  | "PAGES_UNIQUE_DOMAINS"
  | "JIRA_FORGE_INSTALLATION_IDS"
  | "JIRA_CLIENT_KEYS"
>;

export interface Cell {
  /** The id of a cell: a decimal int64 above 0. */
  cell_id: string;
  name: string;
  address: string;
  location_hint: string | null;
  /**
   * FROZEN: begins are refused, and everything else works. DRAINING: like FROZEN, but the begins of a
   * verification are granted. Null: the cell's ledger cannot be reached.
   */
  state: "ACTIVE" | "DRAINING" | "FROZEN" | "REMOVING" | "REMOVED" | null;
  /** The number of leases that are granted and not decided. Null: the cell's ledger cannot be reached. */
  outstanding_leases: number | null;
  /**
   * The number of decisions that some shard has not applied yet; some 10,000 are counted at most. Null:
   * the cell's ledger cannot be reached.
   */
  unapplied_decisions: number | null;
  /**
   * The size of the cell's ledger in bytes. Near the limit `ledger_bytes`, begins are refused with
   * `LEDGER_FULL`. Null: the cell's ledger cannot be reached.
   */
  stored_bytes: number | null;
  /**
   * When the cell was removed. From then on, its keys are refused, and its id is never used again. Null:
   * it was not removed.
   */
  removed_at: string | null;
  /** What the cell said of itself last. Null: it has never reported, or its ledger cannot be reached. */
  status: CellStatus | null;
  /** RFC 3339, in UTC, with milliseconds. */
  created_at: string;
  /**
   * The time of the last change of the cell's name, address or state. If `state` is null, the time of the
   * last change of its name or address.
   */
  updated_at: string;
}

export interface CellChange {
  /** A name that people read. Leasehold doesn't interpret it. */
  name?: string | undefined;
  /** The base URL to which routers send this cell's requests: http or https. */
  address?: string | undefined;
  /** Why you do this. The audit keeps it. */
  reason?: string | undefined;
}

export interface CellStateChange {
  /** Why you do this. The audit keeps it. */
  reason?: string | undefined;
}

/** What a cell said of itself last. Nothing is decided by it. */
export interface CellStatus {
  /** The id of a cell: a decimal int64 above 0. */
  cell_id: string;
  /** When the last report arrived, by the ledger's clock. */
  reported_at: string;
  /** Milliseconds from the last report until this answer. */
  age_ms: number;
  sdk: Sdk;
  reconciliation?: ReportedReconciliation | undefined;
  verification?: ReportedVerification | undefined;
}

export interface CertificateAuthority {
  /** A name that people read, unique in its list. */
  name: string;
  /** The authority's certificate in PEM. It must have signed the clients' certificates itself. */
  certificate: string;
  /** Who its certificates are. The first rule that fits a certificate applies. */
  rules: readonly CertificateRule[];
}

/** Has either `dns` or `uri`. */
export interface CertificateRule {
  /** The certificate must have this DNS name, in full. */
  dns?: string | undefined;
  /** The certificate must have this URI, such as a SPIFFE id, in full. */
  uri?: string | undefined;
  role: "cell" | "router" | "operator" | "viewer" | "scraper";
  /** The cell, for the role `cell` only. */
  cell_id?: string | undefined;
}

/** Something that happened to a lease or a claim on a shard. */
export interface Change {
  /** Identifies the change. A change that is told twice has it twice. */
  id: string;
  /**
   * What happened: a lease was `granted`, `committed` or `rolled_back` on this shard, or a claim was
   * `claimed`, `replaced`, `moved` to another cell by a transfer, or `released`.
   */
  event: "granted" | "committed" | "rolled_back" | "claimed" | "replaced" | "moved" | "released";
  shard: number;
  /** Orders the changes of a shard. */
  position: number;
  /** When the shard carried it out, by its clock. */
  at: string;
  /** The cell whose lease did it. */
  cell_id: string;
  lease_uuid: string;
  /**
   * Of a claim: the epoch that it has, or had before its release. Of a lease: that of its holds on this
   * shard.
   */
  epoch: number;
  claim?: ChangedClaim | undefined;
}

/**
 * The claim as it is after the change, or as it was before its release. Only `uuid` is present if the
 * past of the name was erased.
 */
export interface ChangedClaim {
  /** Stays the same from the claim's first period to its release. */
  uuid: string;
  bucket?: Bucket | undefined;
  subject?: Subject | undefined;
  source?: Source | undefined;
  /** What the claim belongs to, as its cell has said. Absent: it has none. */
  scope?: string | undefined;
}

/**
 * The ownership of a name by a cell. `ACTIVE`: permanent. `LEASE_CREATING`: a granted lease creates it.
 * `LEASE_DESTROYING`: a lease that destroys it holds the name.
 */
export interface ClaimRecord {
  uuid: string;
  bucket: Bucket;
  subject: Subject;
  source: Source;
  /** What the claim belongs to, as its cell has said. Absent: it has none. */
  scope?: string | undefined;
  /** The id of a cell: a decimal int64 above 0. */
  cell_id: string;
  /** Identifies this version of the claim. Each later owner of the name has a larger epoch. */
  epoch: number;
  status: "ACTIVE" | "LEASE_CREATING" | "LEASE_DESTROYING";
  /** The lease that holds the name now, if any. */
  lease_uuid: string | null;
  /**
   * Present if a transfer holds the name: its id. `lease_uuid` is then the UUID of the transfer, and no
   * lease of the cell.
   */
  transfer_id?: string | undefined;
  /** RFC 3339, in UTC, with milliseconds. */
  created_at: string;
  /** RFC 3339, in UTC, with milliseconds. */
  updated_at: string;
}

/**
 * A name: a bucket type in `type` or `bucket` with a `value`, or one of the other fields, such as
 * `{"route": "gitlab-org"}` for the type ROUTES.
 */
export interface ClassifyClaim {
  type?: BucketType | undefined;
  bucket?: BucketType | undefined;
  /** The name, in any spelling that has its canonical form. */
  value?: string | undefined;
  route?: string | undefined;
  organization_path?: string | undefined;
  organizationPath?: string | undefined;
  redirect_route?: string | undefined;
  redirectRoute?: string | undefined;
  username?: string | undefined;
  email?: string | undefined;
  project_id?: ClassifyInteger | undefined;
  projectId?: ClassifyInteger | undefined;
  namespace_id?: ClassifyInteger | undefined;
  namespaceId?: ClassifyInteger | undefined;
  gpg_key?: string | undefined;
  gpgKey?: string | undefined;
  ssh_key?: string | undefined;
  sshKey?: string | undefined;
  user_id?: ClassifyInteger | undefined;
  userId?: ClassifyInteger | undefined;
  organization_id?: ClassifyInteger | undefined;
  organizationId?: ClassifyInteger | undefined;
  service_desk_custom_email?: string | undefined;
  serviceDeskCustomEmail?: string | undefined;
  gpg_key_fingerprint?: string | undefined;
  gpgKeyFingerprint?: string | undefined;
  service_desk_project_key_address_slug?: string | undefined;
  serviceDeskProjectKeyAddressSlug?: string | undefined;
  ssh_key_fingerprint?: string | undefined;
  sshKeyFingerprint?: string | undefined;
  snippet_id?: ClassifyInteger | undefined;
  snippetId?: ClassifyInteger | undefined;
  pages_domain?: string | undefined;
  pagesDomain?: string | undefined;
  pages_unique_domain?: string | undefined;
  pagesUniqueDomain?: string | undefined;
  jira_forge_installation_id?: string | undefined;
  jiraForgeInstallationId?: string | undefined;
  jira_client_key?: string | undefined;
  jiraClientKey?: string | undefined;
}

/** A 64-bit integer: a string, as in the JSON of a protobuf, or a number. */
export type ClassifyInteger = string | number;

export interface ClassifyRequest {
  /**
   * `FIRST_CELL`, `SESSION_PREFIX`, `CELL_ID`, their older names such as `SessionPrefix`, or a bucket
   * type. Left out, or `UNSPECIFIED`, if there are claims.
   */
  type?: string | undefined;
  /** The session prefix, as in `cell-7`, the cell's id, or the name. */
  value?: string | undefined;
  /** A single claim, as older routers send it. It counts only if `claims` is empty. */
  claim?: ClassifyClaim | undefined;
  /** Names to try, in this order. A value that no name can have doesn't exist. */
  claims?: readonly ClassifyClaim[] | undefined;
}

/** One op of the batch that prevents the begin. It never names the other cell. */
export interface Conflict {
  list: "creates" | "destroys" | "replaces";
  index: number;
  bucket: Bucket;
  /**
   * `leased`: a lease holds the name, so waiting helps. `taken`: a name to create has a claim.
   * `not_owner`: another cell has the claim, and is not destroying it. `absent`: there is no claim.
   * `mismatch`: the claim has another subject, source or epoch.
   */
  kind: "leased" | "taken" | "not_owner" | "absent" | "mismatch";
  owner?: "self" | "other" | undefined;
  retry_after_ms?: number | undefined;
}

/** A credential that was used, and by whom. */
export interface CredentialUse {
  /** The id of the key, or what the log has in its place. */
  id: string;
  /** `token` is a subject of an issuer, whichever token it had. */
  kind: "key" | "certificate" | "token";
  role: "cell" | "router" | "operator" | "viewer" | "scraper" | "bridge";
  cell_id: string | null;
  /** The authority of the certificate, or the issuer of the token, by its name here. */
  issued_by: string | null;
  /** The name in the certificate that a rule fits, or the subject of the token. */
  name: string | null;
  /** Null for tokens: a subject has many. */
  expires_at: string | null;
  /** RFC 3339, in UTC, with milliseconds. */
  first_used_at: string;
  /** The beginning of the hour in which it was used last. */
  last_used_at: string;
  revoked_at: string | null;
}

export interface Decision {
  /**
   * Why the operator decides this lease. Required of operators, refused for cells. Stored with the
   * outcome.
   */
  reason?: string | undefined;
}

export interface DigestQuery {
  source_type: SourceType;
  /** Only claims of these bucket types. Left out: all types. */
  bucket_types?: readonly BucketType[] | undefined;
  /** Ranges in ascending order, without overlap. */
  ranges: readonly SourceRange[];
}

export interface DigestedClaims {
  /** The number of claims, or of rows that have one. */
  count: number;
  /** Their digest, computed as for `POST …/records/digests`. */
  hash: string;
}

export interface ExplainedIdentity {
  /** What the log has as `key_id`, and what revokes it. */
  id: string;
  /** Null: it is refused, or it is a subject of tokens. */
  role: "cell" | "router" | "operator" | "viewer" | "scraper" | "bridge" | null;
  cell_id: string | null;
  expires_at: string | null;
  /** Why it is refused. Null: it is not. */
  refusal: string | null;
}

/**
 * One line of an export. If the last line is neither `end` nor `error`, the stream broke off and is
 * incomplete.
 */
export type ExportLine =
  | {
      /** The first line: the time at which the reading began, by the coordinator's clock. */
      as_of: string;
    }
  | {
      record: ClaimRecord;
      /**
       * The last source id whose records are complete with this line. To continue, send it as `source_id_gt`.
       * Empty: none is complete yet, so start from the beginning.
       */
      cursor: string;
    }
  | {
      /** The last line: there are no more records. */
      end: "complete";
    }
  | {
      /**
       * The last line: there may be more records. To get them, call again with `source_id_gt` set to
       * `cursor`.
       */
      end: "continue";
      cursor: string;
    }
  | {
      error: Problem;
    };

/** What an export has of one source type. */
export interface ExportedClaims {
  source_type: SourceType;
  /** The number of claims in the export. */
  count: number;
  /** The digest of these claims, computed as for `POST …/records/digests`. */
  hash: string;
}

/** The part of another cell's record that a cell may see. */
export interface ForeignRecord {
  bucket: Bucket;
  /** The id of a cell: a decimal int64 above 0. */
  cell_id: string;
  status: "ACTIVE" | "LEASE_CREATING" | "LEASE_DESTROYING";
}

/** A deployment on its way to more shards. */
export interface Growth {
  /** The number of shards before. */
  from: number;
  /** The number of shards afterwards. */
  to: number;
  /**
   * `copying`: nothing is served differently, and the growth can be aborted. `cutting`: the cut was
   * ordered and goes on by itself. `cut`: the new shards are in use, and the old ones hand over what is
   * left and delete their rows.
   */
  phase: "copying" | "cutting" | "cut";
  /** RFC 3339, in UTC, with milliseconds. */
  started_at: string;
  /** When the cut was ordered. Null: it was not. */
  cut_at: string | null;
  /**
   * Whether every shard has copied its names, waits for nothing, and has at most 1,000 changes that wait.
   */
  can_be_cut: boolean;
  /** The shards of before, in order. */
  sources: readonly GrowthSource[];
}

export interface GrowthAbort {
  /** Why you do this. The audit keeps it. */
  reason: string;
}

export interface GrowthCut {
  /** Why you do this. The audit keeps it. */
  reason: string;
}

/** How far a shard is that gives names to new shards. */
export interface GrowthSource {
  shard: number;
  /**
   * `none` before the first step, `copying`, then `copied`. After the cut: `pushing` until the shard has
   * handed over its names, `cleaning` while it deletes its own rows of them, and `done`. The growth ends
   * when all are `done`, and every ledger has told the shards what it has seen of them. Null: the shard
   * does not answer.
   */
  state: "none" | "copying" | "copied" | "pushing" | "cleaning" | "done" | null;
  /** The names that were sent to new shards. */
  copied: number;
  /** Changes of copied names that must be sent again, at most 10,000. */
  waiting: number;
  /** The rows of names that have moved and are deleted. */
  cleaned: number;
  /** What must end before the cut: a transfer that holds names of the shard, or its reconciliation. */
  waits_for: "transfer" | "reconciliation" | null;
}

export interface GrowthStart {
  /** The number of shards that is wanted. There can never be fewer again. */
  shards: number;
  /** Why you do this. The audit keeps it. */
  reason: string;
}

export interface HistoryErasure {
  bucket: Bucket;
  /** Why you do this. The audit keeps it. */
  reason: string;
  /** If true, nothing is changed. */
  dry_run: boolean;
}

/** A moment in the history of a part. */
export interface HistoryPoint {
  incarnation: number;
  position: number;
}

export interface IdentitiesChange {
  /** Identifies this version of the identities. It grows with each change. */
  version: number;
  /** The issuers whose tokens are accepted. */
  issuers: readonly TokenIssuer[];
  /** The authorities whose client certificates are accepted. */
  authorities: readonly CertificateAuthority[];
  /** If true, nothing is changed. */
  dry_run?: boolean | undefined;
  /** Why you do this. The audit keeps it. */
  reason?: string | undefined;
}

export interface IdentityChange {
  /** The list and the name of the issuer or authority. */
  entry: string;
  change: "add" | "remove" | "change";
}

export interface IdentityQuestion {
  /** A client certificate in PEM. */
  certificate?: string | undefined;
  /** Or the `iss` of tokens, with their `subject`. */
  issuer?: string | undefined;
  /** The `sub` of the tokens, or else their `common_name`. */
  subject?: string | undefined;
}

/** The stored facts about a key, without the key itself. */
export interface Key {
  id: string;
  role: "cell" | "router" | "operator" | "viewer" | "scraper" | "bridge";
  cell_id: string | null;
  /** RFC 3339, in UTC, with milliseconds. */
  created_at: string;
  /** RFC 3339, in UTC, with milliseconds. */
  expires_at: string;
  note: string | null;
  revoked_at: string | null;
}

/** One batch of one cell, granted as a whole. */
export interface Lease {
  uuid: string;
  /** The id of a cell: a decimal int64 above 0. */
  cell_id: string;
  state: "GRANTED" | "COMMITTED" | "ROLLED_BACK";
  /** RFC 3339, in UTC, with milliseconds. */
  created_at: string;
  /** The age of the lease in milliseconds at the time of this answer, by its ledger's clock. */
  age_ms: number;
  /**
   * Milliseconds since the lease was granted, or renewed last. Only while it is GRANTED. This decides
   * whether it is stale.
   */
  idle_ms?: number | undefined;
  /** When its cell renewed it last. */
  renewed_at?: string | undefined;
  /** Why its cell still works on it. */
  renewal_reason?: string | undefined;
  /** RFC 3339, in UTC, with milliseconds. */
  decided_at?: string | undefined;
  /** Who decided the lease. */
  decided_by?: "cell" | "operator" | undefined;
  /** The id of the operator's key, if an operator decided the lease. */
  decided_by_key?: string | undefined;
  /** The reason that the operator gave. */
  reason?: string | undefined;
  counts: LeaseCounts;
  /** Only while the lease is GRANTED, and not in lists. */
  creates?:
    | readonly {
        bucket: Bucket;
        subject: Subject;
        source: Source;
        /** What the claim belongs to, as its cell has said. Absent: it has none. */
        scope?: string | undefined;
      }[]
    | undefined;
  /** Only while the lease is GRANTED, and not in lists. */
  destroys?:
    | readonly {
        bucket: Bucket;
        subject?: Subject | undefined;
        source?: Source | undefined;
        /**
         * The `epoch` of the record that the op is based on. If the claim has another epoch, the op is
         * refused as a `mismatch`. Left out: the op applies to the claim as it is.
         */
        epoch?: number | undefined;
      }[]
    | undefined;
  /** Only while the lease is GRANTED, and not in lists. */
  replaces?:
    | readonly {
        bucket: Bucket;
        subject: Subject;
        source: Source;
        /** What the claim belongs to, as its cell has said. Absent: it has none. */
        scope?: string | undefined;
        /**
         * The `epoch` of the record that the op is based on. If the claim has another epoch, the op is
         * refused as a `mismatch`. Left out: the op applies to the claim as it is.
         */
        epoch?: number | undefined;
      }[]
    | undefined;
}

export interface LeaseCounts {
  creates: number;
  destroys: number;
  replaces: number;
  /** Destroys of names that had no claim. */
  missing: number;
}

export interface Limit {
  name: string;
  /** The value in this deployment. */
  value: number;
  /** The value if the variable is not set. */
  default: number;
  unit: string;
  /** The variable of the deployment that changes the limit. */
  variable: string;
  /** What is limited. */
  about: string;
}

export interface Lookup {
  /** The names to look up. */
  buckets: readonly Bucket[];
}

/** `record` and `cell` are present if the name was found. */
export interface LookupResult {
  bucket: Bucket;
  found: boolean;
  record?: ClaimRecord | ForeignRecord | undefined;
  cell?: OwnerCell | undefined;
}

export interface MintedKey {
  id: string;
  role: "cell" | "router" | "operator" | "viewer" | "scraper" | "bridge";
  cell_id: string | null;
  /** RFC 3339, in UTC, with milliseconds. */
  created_at: string;
  /** RFC 3339, in UTC, with milliseconds. */
  expires_at: string;
  note: string | null;
  /** The key itself. It is shown only here and stored nowhere. */
  key: string;
}

export interface NewCell {
  /** The id of a cell: a decimal int64 above 0. */
  cell_id: string | number;
  /** A name that people read. Leasehold doesn't interpret it. */
  name: string;
  /** The base URL to which routers send this cell's requests: http or https. */
  address: string;
  /**
   * The region in which the cell's ledger is created; choose the one nearest to the cell. It cannot be
   * changed later. Left out: Cloudflare chooses.
   */
  location_hint?:
    | "wnam"
    | "enam"
    | "sam"
    | "weur"
    | "eeur"
    | "apac"
    | "apac-ne"
    | "apac-se"
    | "oc"
    | "afr"
    | "me"
    | undefined;
  /** Why you do this. The audit keeps it. */
  reason?: string | undefined;
}

export interface NewKey {
  role: "cell" | "router" | "operator" | "viewer" | "scraper" | "bridge";
  /** The cell of the key. Required for the role `cell`, refused for the others. */
  cell_id?: string | number | undefined;
  /** Lifetime in seconds, at most 34560000 (400 days). Left out: 90 days. */
  expires_in_s?: number | undefined;
  /** What the key is for. */
  note?: string | undefined;
  /** Why you do this. The audit keeps it. */
  reason?: string | undefined;
}

export interface NewWebhook {
  /**
   * Where messages are sent: an https URL. Its host must be public, unless the coordinator runs with
   * `LEASEHOLD_WEBHOOK_HOSTS=any`.
   */
  url: string;
  /** The events that the endpoint is told of. Left out when it is added: all of them. */
  events?:
    | readonly (
        | "stale_leases"
        | "history_lost"
        | "contradiction"
        | "cell_silent"
        | "cell_drift"
        | "cron_failed"
        | "credential_expiring"
      )[]
    | undefined;
  thresholds?: WebhookThresholds | undefined;
  /** How many seconds a condition must hold before it fires. 300 by default. */
  for_s?: number | undefined;
  /** How many seconds it must not hold before it is resolved. 300 by default. */
  resolve_s?: number | undefined;
  /** False: nothing is evaluated or sent for this endpoint. */
  enabled?: boolean | undefined;
  /** Why you do this. The audit keeps it. */
  reason?: string | undefined;
}

/** Something that an operator has started, and that takes longer than a call. */
export interface Operation {
  /** The id of the operation. A reconciliation has the id of its part. */
  id: string;
  /**
   * `growth`: the deployment gets more shards. `restore`: a backup is restored. `reconciliation`: a shard
   * has accepted that it went back in time, until it is finished.
   */
  kind: "growth" | "restore" | "reconciliation";
  /** `shards`, `deployment`, or a part such as `shard-3`. */
  about: string;
  /** RFC 3339, in UTC, with milliseconds. */
  started_at: string;
  /** The key of the operator who started it. */
  started_by: string;
  /** How an operator ends it. */
  how_to_end: string;
}

/** The cell that owns the name. */
export interface OwnerCell {
  /** The id of a cell: a decimal int64 above 0. */
  id: string;
  /** The base URL to which requests for this name go. */
  address: string;
}

/** A shard, a ledger or the directory, and whether it has gone back in time. */
export interface Part {
  /** A shard by its number, the ledger of a cell by the cell's id, or `directory`. */
  id: string;
  /**
   * `complete`: in service. `lost`: it has gone back in time, and refuses everything. `reconciling`: a
   * shard that has accepted its loss. Until it is finished, it grants only what verification begins.
   */
  state: "complete" | "lost" | "reconciling";
  /** The newest point that the part has. Null: none. */
  point: HistoryPoint | null;
  /** What was noticed. Null if the part is complete. */
  loss: {
    /** Who has seen more of the part than it has, or `an operator`. */
    noticed_by: string;
    /** RFC 3339, in UTC, with milliseconds. */
    noticed_at: string;
    /** The point that was seen, and that the part does not have. Null: an operator declared the loss. */
    seen: HistoryPoint | null;
    /** The newest point that was left of the part. */
    point: HistoryPoint | null;
  } | null;
}

export interface PartFinish {
  /** Why you do this. The audit keeps it. */
  reason: string;
}

export interface PartReconciliation {
  /** If true, nothing is changed. */
  dry_run: boolean;
  /**
   * If true, a part that has noticed nothing refuses everything at once, as if somebody had seen more of
   * it, and is then reconciled. False by default.
   */
  declare_lost?: boolean | undefined;
  /** Why you do this. The audit keeps it. */
  reason: string;
}

/** The time during which a name had one cell, subject, source, scope and spelling. */
export interface Period {
  /** The id of a cell: a decimal int64 above 0. */
  cell_id: string;
  /** The name in the spelling of this claim. */
  value: string;
  subject: Subject;
  source: Source;
  /** What the claim belongs to, as its cell has said. Absent: it has none. */
  scope?: string | undefined;
  /** The epoch of the claim. A later period has a larger one. */
  epoch: number;
  /** RFC 3339, in UTC, with milliseconds. */
  from: string;
  /** When the claim ended. Null: it has not ended. */
  until: string | null;
  /** The lease that ended the claim: one of the same cell, or a transfer. Null: it has not ended. */
  ended_by: {
    lease_uuid: string;
    /**
     * `replace`: another period of the same cell follows at once. `move`: a transfer has given the name
     * to another cell, and the lease is the transfer.
     */
    kind: "destroy" | "replace" | "move";
  } | null;
}

/** A problem (RFC 9457). Every 4xx and 5xx answer is one. */
export interface Problem {
  /** The part of the reference page that explains the code. */
  type: string;
  title: string;
  status: number;
  detail: string;
  code:
    | "INVALID_ARGUMENT"
    | "UNAUTHENTICATED"
    | "PERMISSION_DENIED"
    | "NOT_FOUND"
    | "ALREADY_EXISTS"
    | "FAILED_PRECONDITION"
    | "ABORTED"
    | "RESOURCE_EXHAUSTED"
    | "INTERNAL"
    | "UNAVAILABLE"
    | "DEADLINE_EXCEEDED";
  /** A finer constant than the code, such as `LEASE_COMMITTED`. */
  reason?: string | undefined;
  /** The wrong part of the request, such as `creates[3].bucket.value`. */
  field?: string | undefined;
  /** Whether the same call, unchanged, may succeed later. */
  retryable: boolean;
  request_id: string;
  /** Every op that is in the way, not only the first. */
  conflicts?: readonly Conflict[] | undefined;
  /** Only with `OPERATION_RUNNING`: the operation that is in the way. */
  operation?: Operation | undefined;
  /** The id of a begin whose outcome is unknown. Repeat the begin with `PUT` and this id. */
  lease_uuid?: string | undefined;
  /**
   * Milliseconds to wait before trying again. Only in the last line of an export, which has no
   * `Retry-After`.
   */
  retry_after_ms?: number | undefined;
  /** Only if no cell has the name of `GET /v1/route`: what that answer is worth. */
  route?: RouteFacts | undefined;
  /** Only from `POST /v1/classify`: the sentence of GitLab's Topology Service. */
  message?: string | undefined;
  /** The parts that do not answer. Only from `GET /readyz`. */
  failed?: readonly string[] | undefined;
}

/** A public key as in a JWK set (RFC 7517). */
export interface PublicKey {
  kty: "RSA" | "EC" | "OKP";
  /** The id by which tokens name the key. */
  kid: string;
  alg?: string | undefined;
  use?: string | undefined;
  crv?: string | undefined;
  n?: string | undefined;
  e?: string | undefined;
  x?: string | undefined;
  y?: string | undefined;
}

/** The digest of a cell's claims in one range. */
export interface RangeDigest {
  /** The number of claims in the range. */
  count: number;
  /** 32 hexadecimal digits: the sum of the claims' digests, as four 32-bit words, each modulo 2^32. */
  hash: string;
  /**
   * True: a hold touches the range, or the range has more claims than could be read at one moment. Then
   * the digest proves nothing, and `count` may be too small.
   */
  held: boolean;
  /** The latest `updated_at` of the range's claims. Null: there are none. */
  newest_updated_at: string | null;
}

/** What the run did, by result. */
export interface ReconciliationCounts {
  processed?: number | undefined;
  committed?: number | undefined;
  rolled_back?: number | undefined;
  pending?: number | undefined;
  orphaned?: number | undefined;
  contradicted?: number | undefined;
  failed?: number | undefined;
}

/** The last reconciliation. */
export interface ReconciliationReport {
  /** `aborted`: a list could not be read to its end, so some leases were left to the next run. */
  outcome: "done" | "aborted";
  /** Whether the run read all leases, and local rows without an outstanding lease. */
  is_full?: boolean | undefined;
  counts?: ReconciliationCounts | undefined;
  /** Leases that are stale for the cell and that the run could not decide. */
  stale_leases?: number | undefined;
  /** Leases with names of deleted rows that the run tried to release without success. */
  unreleased_deletions?: number | undefined;
  /** Milliseconds from the start of the run until this was sent. At most ten years. */
  started_ago_ms?: number | undefined;
  /** Milliseconds from the end of the run until this was sent. At most ten years. */
  ended_ago_ms?: number | undefined;
}

/** What a removal of a cell would release, and how far it is. */
export interface Removal {
  /** The id of a cell: a decimal int64 above 0. */
  cell_id: string;
  /**
   * `REMOVING`: a removal has started. `REMOVED`: it has ended, and the cell has no claims. Otherwise
   * none has started.
   */
  state: "ACTIVE" | "DRAINING" | "FROZEN" | "REMOVING" | "REMOVED";
  /** Leases that are granted and not decided. */
  outstanding_leases: number;
  /** Decisions that a shard has not applied yet. */
  unapplied_decisions: number;
  /**
   * Claims that the cell has now, by their types. The removal releases their names, and keeps everything
   * else.
   */
  claims: readonly {
    source_type: SourceType;
    bucket_type: BucketType;
    count: number;
  }[];
  /** The sum of the counts. */
  claims_total: number;
  /**
   * Not null: this answer counts only some of the claims. Repeat the call with this `cursor`, and add up
   * the counts. Null: no claim is left to count.
   */
  cursor: string | null;
  /** Null: no step has started a removal. */
  progress: {
    /** The claims that the export has. */
    exported_claims: number;
    /** The claims that steps have released. */
    released_claims: number;
  } | null;
  /**
   * When the removal has ended, as the directory has it. Null: it has not ended. Null although `state` is
   * `REMOVED`: the directory does not know it yet. Repeat a step, or wait some minutes.
   */
  removed_at: string | null;
}

export interface RemovalApproval {
  /** One entry for each source type. A type without claims may be left out. */
  export: readonly ExportedClaims[];
  /**
   * The `cursor` of the previous answer, sent with the same path and body. Empty or left out: the first
   * call.
   */
  cursor?: string | undefined;
}

export interface RemovalStep {
  /** Why you do this. The audit keeps it. */
  reason: string;
  /**
   * The most claims to release, by default 1000. A value above the limit of a begin (`batch_ops`) counts
   * as that limit.
   */
  limit?: number | undefined;
}

export interface Renewal {
  /** What the cell does, for operators. */
  reason: string;
}

export interface Report {
  shard: number;
  /** The position after which the page begins. */
  after: number;
  /** The page has every change up to and including this position. */
  through: number;
  /**
   * Pairs of a distance and keys: the names that leases put on hold at the position `after` plus the
   * distance, in ascending order. What a lookup shows of a name changes only after the name was put on
   * hold.
   */
  held: readonly (readonly [number, readonly string[]])[];
  /** True: the page is full and never changes. Continue with `after` set to `through`. */
  has_more: boolean;
  /**
   * The age of the answer in milliseconds when it was sent. A cache adds the time since it sent its
   * question.
   */
  age_ms: number;
}

/** The last reconciliation that was reported. */
export interface ReportedReconciliation {
  /** `aborted`: a list could not be read to its end, so some leases were left to the next run. */
  outcome: "done" | "aborted";
  /** Whether the run read all leases, and local rows without an outstanding lease. */
  is_full?: boolean | undefined;
  counts?: ReconciliationCounts | undefined;
  /** Leases that are stale for the cell and that the run could not decide. */
  stale_leases?: number | undefined;
  /** Leases with names of deleted rows that the run tried to release without success. */
  unreleased_deletions?: number | undefined;
  /** RFC 3339, in UTC, with milliseconds. */
  started_at?: string | undefined;
  /** RFC 3339, in UTC, with milliseconds. */
  ended_at: string;
  /** Milliseconds from the end of the run until this answer. */
  ended_ago_ms: number;
  /** When the last run that was done has ended. Left out: none was reported. */
  last_done_at?: string | undefined;
}

/** The last verification that was reported. */
export interface ReportedVerification {
  /**
   * How the run ended. `needs_approval`: it would change more than its limits allow, so it waits for a
   * person.
   */
  status: "done" | "out_of_time" | "needs_approval" | "slot_lost" | "stopped" | "failed";
  /** False for a dry run, which changes nothing. Left out: unknown. */
  is_applied?: boolean | undefined;
  counts?: VerificationCounts | undefined;
  /** With `needs_approval`: which limit the run would exceed. */
  approval_reason?: string | undefined;
  /** RFC 3339, in UTC, with milliseconds. */
  started_at?: string | undefined;
  /** RFC 3339, in UTC, with milliseconds. */
  ended_at: string;
  /** Milliseconds from the end of the run until this answer. */
  ended_ago_ms: number;
  /** When the last run that was done has ended. Left out: none was reported. */
  last_done_at?: string | undefined;
}

export interface RestoreEnd {
  /** Why you do this. The audit keeps it. */
  reason: string;
}

export interface RestoreStart {
  /** A UUID of version 1 to 8 (RFC 9562). Answers have it in lower case. */
  id: string;
  kind: "restore";
  /** Why you do this. The audit keeps it. */
  reason: string;
}

export interface Revocation {
  /**
   * The cell of a key that was made offline. Without it, the cell's ledger doesn't learn of the
   * revocation.
   */
  cell_id?: string | number | undefined;
  /** Why you do this. The audit keeps it. */
  reason?: string | undefined;
}

/** What an answer about a name is worth. */
export interface RouteFacts {
  /**
   * A hash of the name, as 16 hexadecimal digits, by which reports refer to it. Different names may have
   * the same key.
   */
  key: string;
  /** The number of the name's shard. */
  shard: number;
  /** The shard's position when the name was read. Each change of the shard makes it larger. */
  position: number;
  /** False: a lease holds the name, so the answer may change at any time. Don't keep it. */
  settled: boolean;
  /**
   * The age of the answer in milliseconds when it was sent. A cache adds the time since it sent its
   * question.
   */
  age_ms: number;
}

export interface RouteLookup {
  /** The names to find. */
  names: readonly Bucket[];
  /**
   * Positions of shards that you have seen, as pairs `shard:position` with commas between them. If the
   * shard of a name has not reached its position, the name is unavailable. Pairs of other shards have no
   * effect.
   */
  min_position?: string | undefined;
}

/** `cell` and `epoch` are present only if the name was found. */
export interface RouteResult {
  name: Bucket;
  found: boolean;
  cell?: OwnerCell | undefined;
  /**
   * The epoch of the claim, or of the granted lease that creates it. Each later owner of the name has a
   * larger one. A cell key doesn't get it for another cell's name.
   */
  epoch?: number | undefined;
  /**
   * A hash of the name, as 16 hexadecimal digits, by which reports refer to it. Different names may have
   * the same key.
   */
  key: string;
  /** The number of the name's shard. */
  shard: number;
  /** The shard's position when the name was read. Each change of the shard makes it larger. */
  position: number;
  /** False: a lease holds the name, so the answer may change at any time. Don't keep it. */
  settled: boolean;
  /**
   * The age of the answer in milliseconds when it was sent. A cache adds the time since it sent its
   * question.
   */
  age_ms: number;
}

/** A row that breaks a rule of the protocol. */
export interface ScrubFinding {
  /**
   * What is wrong. In a shard: `wrong_epoch`, `wrong_digest`, `wrong_source_order`, `wrong_shard`,
   * `wrong_canonical_form`, `unfit_hold`, which does not fit the claim of its name, and `unlogged_hold`,
   * which the log lacks or has with another cell, time or kind. In a ledger: `missing_holds` of a granted
   * lease, `unreadable_lease`, `unlisted_lease`, which is granted and which no list has, and
   * `undelivered_decision`.
   */
  kind:
    | "wrong_epoch"
    | "wrong_digest"
    | "wrong_source_order"
    | "wrong_shard"
    | "wrong_canonical_form"
    | "unfit_hold"
    | "unlogged_hold"
    | "missing_holds"
    | "unreadable_lease"
    | "unlisted_lease"
    | "undelivered_decision";
  table: "holds" | "claims" | "past_claims" | "range_holds" | "leases" | "decisions";
  /** RFC 3339, in UTC, with milliseconds. */
  found_at: string;
  /** The name of the row. Null: the finding is about a range hold or a lease. */
  bucket: {
    /** Null: no type in use has the number. */
    type: string | null;
    canonical: string;
  } | null;
  /** The cell that the row names. */
  cell_id: string;
  /** Null: the row is a claim. */
  lease_uuid: string | null;
  /** Null: the finding is about a lease. */
  epoch: number | null;
  /** The shard that lacks holds of the lease, and how many. */
  missing: {
    shard: number;
    holds: number;
  } | null;
}

/** One pass over all rows of a part. */
export interface ScrubPass {
  /** Counts the passes of the part. */
  number: number;
  /** RFC 3339, in UTC, with milliseconds. */
  started_at: string;
  /** Null: the pass is under way. */
  ended_at: string | null;
  /** The table that is read now. */
  table: "holds" | "claims" | "past_claims" | "range_holds" | "leases" | "decisions" | null;
  /** The rows that were checked. */
  rows: number;
  /** The number of findings. */
  found: number;
  /** The first of them, at most 20. */
  findings: readonly ScrubFinding[];
  /** Holds that inquiries have ended, because their begins or leases were over. */
  cleared_holds: number;
  /** Holds and leases that were not compared, because the other part did not answer. */
  unchecked: number;
}

/** How far the scrub of a part is, and what it has found. */
export interface ScrubStatus {
  /** A shard by its number, or the ledger of a cell by the cell's id. */
  part: string;
  state: "complete" | "lost" | "reconciling";
  /** Null: no pass is under way. */
  running: ScrubPass | null;
  /** The last pass that has ended. Null: none has. */
  last: ScrubPass | null;
}

export interface ScrubStep {
  /** If true, a new pass begins with the first row. */
  restart: boolean;
}

/** The code that the cell runs. */
export interface Sdk {
  /** The name of the SDK, or of your own code. */
  name: string;
  /** Its version. */
  version: string;
}

export interface Shards {
  /** The number of shards in use. */
  shards: number;
  /** Null: the number of shards is not changing. */
  growth: Growth | null;
}

/** The row of the cell's database that the name comes from. */
export interface Source {
  type: SourceType;
  id: string;
}

/** The row of the cell's database that the name comes from. */
export interface SourceGiven {
  type: SourceType;
  /** 1 to 128 bytes of UTF-8 without control characters, or an integer that JSON represents exactly. */
  id: string | number;
}

/**
 * A range of source ids, in the order of the list of records: decimal ids as numbers first, then all
 * others by bytes.
 */
export interface SourceRange {
  /** Only source ids after this one. Left out: from the first. */
  source_id_gt?: string | number | undefined;
  /** Only source ids up to and including this one. Left out: to the last. */
  source_id_lte?: string | number | undefined;
}

/** The table of the cell's database that the name comes from. */
export type SourceType = DeclaredNames<
  "source_types",
  | "RAILS_TABLE_USERS"
  | "RAILS_TABLE_EMAILS"
  | "RAILS_TABLE_ROUTES"
  | "RAILS_TABLE_PROJECTS"
  | "RAILS_TABLE_NAMESPACES"
  | "RAILS_TABLE_ORGANIZATIONS"
  | "RAILS_TABLE_REDIRECT_ROUTES"
  | "RAILS_TABLE_GPG_KEYS"
  | "RAILS_TABLE_KEYS"
  | "RAILS_TABLE_SERVICE_DESK_SETTINGS"
  | "RAILS_TABLE_MEMBERS"
  | "RAILS_TABLE_SNIPPETS"
  | "RAILS_TABLE_PAGES_DOMAINS"
  | "RAILS_TABLE_PROJECT_SETTINGS"
  | "RAILS_TABLE_JIRA_CONNECT_INSTALLATIONS"
>;

export interface StaleLease {
  uuid: string;
  /** The id of a cell: a decimal int64 above 0. */
  cell_id: string;
  state: "GRANTED" | "COMMITTED" | "ROLLED_BACK";
  /** RFC 3339, in UTC, with milliseconds. */
  created_at: string;
  /** The age of the lease in milliseconds at the time of this answer, by its ledger's clock. */
  age_ms: number;
  /**
   * Milliseconds since the lease was granted, or renewed last. Only while it is GRANTED. This decides
   * whether it is stale.
   */
  idle_ms?: number | undefined;
  /** When its cell renewed it last. */
  renewed_at?: string | undefined;
  /** Why its cell still works on it. */
  renewal_reason?: string | undefined;
  /** RFC 3339, in UTC, with milliseconds. */
  decided_at?: string | undefined;
  /** Who decided the lease. */
  decided_by?: "cell" | "operator" | undefined;
  /** The id of the operator's key, if an operator decided the lease. */
  decided_by_key?: string | undefined;
  /** The reason that the operator gave. */
  reason?: string | undefined;
  counts: LeaseCounts;
  /** Only while the lease is GRANTED, and not in lists. */
  creates?:
    | readonly {
        bucket: Bucket;
        subject: Subject;
        source: Source;
        /** What the claim belongs to, as its cell has said. Absent: it has none. */
        scope?: string | undefined;
      }[]
    | undefined;
  /** Only while the lease is GRANTED, and not in lists. */
  destroys?:
    | readonly {
        bucket: Bucket;
        subject?: Subject | undefined;
        source?: Source | undefined;
        /**
         * The `epoch` of the record that the op is based on. If the claim has another epoch, the op is
         * refused as a `mismatch`. Left out: the op applies to the claim as it is.
         */
        epoch?: number | undefined;
      }[]
    | undefined;
  /** Only while the lease is GRANTED, and not in lists. */
  replaces?:
    | readonly {
        bucket: Bucket;
        subject: Subject;
        source: Source;
        /** What the claim belongs to, as its cell has said. Absent: it has none. */
        scope?: string | undefined;
        /**
         * The `epoch` of the record that the op is based on. If the claim has another epoch, the op is
         * refused as a `mismatch`. Left out: the op applies to the claim as it is.
         */
        epoch?: number | undefined;
      }[]
    | undefined;
  /** True: its ledger says that it is still granted. False: its ledger could not be asked. */
  confirmed: boolean;
}

/** What a cell says of itself. */
export interface StatusReport {
  sdk: Sdk;
  reconciliation?: ReconciliationReport | undefined;
  verification?: VerificationReport | undefined;
}

/** The entity that the name is about, such as a user or a group. */
export interface Subject {
  type: SubjectType;
  id: string;
}

/** The entity that the name is about, such as a user or a group. */
export interface SubjectGiven {
  type: SubjectType;
  /** 1 to 128 bytes of UTF-8 without control characters, or an integer that JSON represents exactly. */
  id: string | number;
}

/** The type of the entity that the name is about. */
export type SubjectType = DeclaredNames<"subject_types", "ORGANIZATION" | "NAMESPACE" | "PROJECT" | "USER">;

/** An issuer of JSON web tokens (OpenID Connect). */
export interface TokenIssuer {
  /** A name that people read, unique in its list. */
  name: string;
  /** The `iss` of its tokens. */
  issuer: string;
  /** What the `aud` of its tokens must be or contain. */
  audience: string;
  /** The algorithms with which its tokens may be signed. */
  algorithms: readonly (
    | "RS256"
    | "RS384"
    | "RS512"
    | "PS256"
    | "PS384"
    | "PS512"
    | "ES256"
    | "ES384"
    | "ES512"
    | "EdDSA"
    | "Ed25519"
  )[];
  /** Where its public keys are read: https, or http on this machine. */
  jwks_url?: string | undefined;
  /** Its public keys, instead of `jwks_url`, if it cannot be reached from here. */
  keys?: readonly PublicKey[] | undefined;
  /**
   * A header in which a proxy sends its tokens. They are then read from there, too, if a request has no
   * `Authorization`, but not for pages of other sites. Without it, tokens are only read from
   * `Authorization`.
   */
  token_header?: "cf-access-jwt-assertion" | undefined;
  /** Who its tokens are. The first rule that fits a token applies. */
  rules: readonly TokenRule[];
}

export interface TokenRule {
  /**
   * The claims that a token must have: each must have this value, or one of these values. Values are
   * compared exactly. A claim that is a list must contain one of them.
   */
  claims: { readonly [name: string]: string | readonly string[] };
  role: "cell" | "router" | "operator" | "viewer" | "scraper";
  /** The cell, for the role `cell` only. */
  cell_id?: string | undefined;
}

/** A move of all claims of a scope from one cell to another. */
export interface Transfer {
  /** The id of a transfer: the id of its destination, `-`, and its UUID. */
  id: string;
  /** The lease of the transfer, as the history of names and the change feed have it. */
  uuid: string;
  /** The id of a cell: a decimal int64 above 0. */
  from: string;
  /** The id of a cell: a decimal int64 above 0. */
  to: string;
  /** The scope whose claims are moved. */
  scope: string;
  /**
   * `PREPARED`: the scope is held on all shards. `CUT`: the names belong to the destination, and some
   * shards still rewrite them. `FINISHED`: all shards have rewritten them. `ABORTED`: nothing has
   * changed. But if `is_rebuilt` is true, the ledger may have lost a cut, which shards have carried out.
   */
  state: "PREPARED" | "CUT" | "FINISHED" | "ABORTED";
  prepared: TransferStep;
  /** Null: the destination has not accepted it. */
  accepted: TransferStep | null;
  /** The cut or the abort. Null: neither. */
  decided: TransferStep | null;
  /** The transfer that this one undoes. */
  switch_back_of: string | null;
  /** True if the ledger has lost the transfer and got it back from the shards: an operator decides it. */
  is_rebuilt: boolean;
  /**
   * What each cell must report: the source the claims that it has, and the destination those that it will
   * have in the scope. A cell gets only its own, and null for the other one.
   */
  expected: {
    from: DigestedClaims | null;
    to: DigestedClaims | null;
  };
  /** What each cell has reported last. Null: nothing. */
  reports: {
    from: TransferReport | null;
    to: TransferReport | null;
  };
  /** What a cut would be refused for. Empty: it can be cut, or it is decided. */
  missing: readonly string[];
  /**
   * The shards that have not carried out the decision. 0: all have. Null: not decided, or not known since
   * a restart of the ledger.
   */
  unfinished_shards: number | null;
}

export interface TransferGiven {
  /** A new UUID. The id of the transfer is made from it. */
  uuid: string;
  /** The source: the cell that has the claims. Required of operators; a cell is its own source. */
  from?: string | number | undefined;
  /** The destination: the cell that gets the claims. */
  to: string | number;
  /** The scope whose claims are moved. */
  scope: string | number;
  /**
   * The finished transfer that this one undoes. The prepare is refused if the names of the scope have
   * changed since, or if it was cut too long ago.
   */
  switch_back_of?: string | undefined;
  /** Why you do this. Required of operators, whose change has an audit entry. */
  reason?: string | undefined;
}

/** What a transfer would move. Nothing was changed. */
export interface TransferPlan {
  /** The id of a cell: a decimal int64 above 0. */
  from: string;
  /** The id of a cell: a decimal int64 above 0. */
  to: string;
  /** The scope whose claims are moved. */
  scope: string;
  /** The claims that would be moved, by their types. */
  claims: readonly {
    source_type: SourceType;
    bucket_type: BucketType;
    count: number;
  }[];
  /** The sum of the counts. */
  claims_total: number;
  /** The claims that the destination has in the scope already. It keeps them. Null for a cell. */
  present_claims: number | null;
  /** Some leases of the source that hold names of the scope. They must end before the prepare. */
  leases: readonly {
    /** The id of a cell: a decimal int64 above 0. */
    cell_id: string;
    uuid: string;
  }[];
  /** What a prepare would be refused for now. Empty: nothing. */
  obstacles: readonly string[];
  /**
   * Not null: this answer counts only some of the claims. Repeat the call with this `cursor`, and add up
   * the counts. Null: no claim is left to count.
   */
  cursor: string | null;
}

export interface TransferPlanGiven {
  /** The source: the cell that has the claims. Required of operators; a cell is its own source. */
  from?: string | number | undefined;
  /** The destination: the cell that gets the claims. */
  to: string | number;
  /** The scope whose claims are moved. */
  scope: string | number;
  /** The `cursor` of the previous answer, sent with the same body. Empty or left out: the first call. */
  cursor?: string | undefined;
}

/** What a cell has reported of its rows. The other cell gets neither `count` nor `hash`. */
export interface TransferReport {
  count: number | null;
  hash: string | null;
  /** True if it equals what the shards have counted. */
  is_equal: boolean;
  /** RFC 3339, in UTC, with milliseconds. */
  at: string;
  /** How long ago that is, by the clock of the destination's ledger. */
  age_ms: number;
  /** Who did it: an operator, the source (`from`) or the destination (`to`). */
  by: "operator" | "from" | "to";
  /** The id of the key. Null: a key of somebody else, which a cell does not get. */
  key_id: string | null;
  reason: string | null;
}

export interface TransferReportGiven {
  /** Whose rows these are. Required of operators; a cell reports its own rows. */
  side?: "from" | "to" | undefined;
  /** The number of claims, or of rows that have one. */
  count: number;
  /** Their digest, computed as for `POST …/records/digests`. */
  hash: string;
  /** Why you do this. Required of operators, whose change has an audit entry. */
  reason?: string | undefined;
}

export interface TransferStep {
  /** RFC 3339, in UTC, with milliseconds. */
  at: string;
  /** How long ago that is, by the clock of the destination's ledger. */
  age_ms: number;
  /** Who did it: an operator, the source (`from`) or the destination (`to`). */
  by: "operator" | "from" | "to";
  /** The id of the key. Null: a key of somebody else, which a cell does not get. */
  key_id: string | null;
  reason: string | null;
}

export interface TransferStepGiven {
  /** Why you do this. Required of operators, whose change has an audit entry. */
  reason?: string | undefined;
}

export interface TypeChange {
  /** The list and the name of a type. */
  entry: string;
  change: "add" | "remove" | "change";
  /** The entry before. Null: there was none. */
  before: unknown;
  /** The entry after. Null: there is none. */
  after: unknown;
}

export interface TypeRefusal {
  /** The list and the name of a type. */
  entry: string;
  /** Why the change is refused. */
  reason: string;
}

/** The types of a deployment, by their names. */
export interface TypeSet {
  /** What must be unique, such as usernames. */
  bucket_types: { readonly [name: string]: unknown };
  /** Whom a name is about, such as a user. */
  subject_types: { readonly [name: string]: unknown };
  /** The table that a name comes from. */
  source_types: { readonly [name: string]: unknown };
}

export interface TypesChange {
  /** Identifies this version of the set. It grows with each change, and when a type comes into use. */
  version: number;
  types: TypeSet;
  /** If true, nothing is changed. */
  dry_run?: boolean | undefined;
  /** Why you do this. The audit keeps it. */
  reason?: string | undefined;
}

/**
 * A name whose answer is unknown, with the fields of the problem that a call for it alone would get.
 * Don't treat it as 'not found'.
 */
export interface UnavailableName {
  bucket: Bucket;
  unavailable: {
    code:
      | "INVALID_ARGUMENT"
      | "UNAUTHENTICATED"
      | "PERMISSION_DENIED"
      | "NOT_FOUND"
      | "ALREADY_EXISTS"
      | "FAILED_PRECONDITION"
      | "ABORTED"
      | "RESOURCE_EXHAUSTED"
      | "INTERNAL"
      | "UNAVAILABLE"
      | "DEADLINE_EXCEEDED";
    /** A finer constant than the code, such as `LEASE_COMMITTED`. */
    reason?: string | undefined;
    /** The wrong part of the request, such as `creates[3].bucket.value`. */
    field?: string | undefined;
    detail: string;
    /** Milliseconds to wait before asking again. */
    retry_after_ms: number;
  };
}

/**
 * A name whose answer is unknown, with the fields of the problem that a call for it alone would get.
 * Don't treat it as 'not found'.
 */
export interface UnavailableRoute {
  name: Bucket;
  /** The number of the name's shard. */
  shard: number;
  unavailable: {
    code:
      | "INVALID_ARGUMENT"
      | "UNAUTHENTICATED"
      | "PERMISSION_DENIED"
      | "NOT_FOUND"
      | "ALREADY_EXISTS"
      | "FAILED_PRECONDITION"
      | "ABORTED"
      | "RESOURCE_EXHAUSTED"
      | "INTERNAL"
      | "UNAVAILABLE"
      | "DEADLINE_EXCEEDED";
    /** A finer constant than the code, such as `LEASE_COMMITTED`. */
    reason?: string | undefined;
    /** The wrong part of the request, such as `creates[3].bucket.value`. */
    field?: string | undefined;
    detail: string;
    /** Milliseconds to wait before asking again. */
    retry_after_ms: number;
  };
}

/** The versions of the parts, and the format in force. */
export interface Upgrade {
  /** The version of the Worker that answers. */
  release: string;
  /** The format in force. */
  format: number;
  /** The newest format that a part speaks. */
  newest_format: number;
  /** Whether the newest format is in force. */
  is_finished: boolean;
  /** What works only once the upgrade is finished. */
  waiting_features: readonly string[];
  /** What keeps the upgrade from being finished. */
  blockers: readonly {
    /** `shard-3`, `ledger-7`, `directory`, or `d1`. */
    part: string;
    /**
     * `OLDER_CODE`: the part does not speak the newest format. `OLDER_CALLERS`: within the last minute,
     * it was called by code that does not. `UNREACHABLE`: the part does not answer. `MISSING_MIGRATION`:
     * D1 lacks a migration.
     */
    cause: "OLDER_CODE" | "OLDER_CALLERS" | "UNREACHABLE" | "MISSING_MIGRATION";
    detail: string;
  }[];
}

export interface UpgradeFinish {
  /** The format, which is that of `newest_format`. */
  format: number;
  /** Why you do this. The audit keeps it. */
  reason: string;
}

/**
 * What the verification has found and repaired so far, as in the report of the SDK. Drift is `missing`,
 * `different`, `extra`, `duplicates` and `unnameable`.
 */
export interface VerificationCounts {
  rows?: number | undefined;
  claims?: number | undefined;
  ranges?: number | undefined;
  equal_ranges?: number | undefined;
  records?: number | undefined;
  missing?: number | undefined;
  different?: number | undefined;
  extra?: number | undefined;
  created?: number | undefined;
  replaced?: number | undefined;
  destroyed?: number | undefined;
  recent?: number | undefined;
  leased?: number | undefined;
  other_cell?: number | undefined;
  duplicates?: number | undefined;
  unnameable?: number | undefined;
  needed?: number | undefined;
  not_verified?: number | undefined;
  changed?: number | undefined;
}

/** The last verification that did something. */
export interface VerificationReport {
  /**
   * How the run ended. `needs_approval`: it would change more than its limits allow, so it waits for a
   * person.
   */
  status: "done" | "out_of_time" | "needs_approval" | "slot_lost" | "stopped" | "failed";
  /** False for a dry run, which changes nothing. Left out: unknown. */
  is_applied?: boolean | undefined;
  counts?: VerificationCounts | undefined;
  /** With `needs_approval`: which limit the run would exceed. */
  approval_reason?: string | undefined;
  /** Milliseconds from the start of the run until this was sent. At most ten years. */
  started_ago_ms?: number | undefined;
  /** Milliseconds from the end of the run until this was sent. At most ten years. */
  ended_ago_ms?: number | undefined;
}

/** Permission for one run to verify one cell. */
export interface VerificationSlot {
  uuid: string;
  /** The id of a cell: a decimal int64 above 0. */
  cell_id: string;
  /** RFC 3339, in UTC, with milliseconds. */
  expires_at: string;
  /** Milliseconds from this answer until the slot expires, by the directory's clock. */
  expires_in_ms: number;
}

/** An endpoint that is told of events, without its secret. */
export interface Webhook {
  /** The id of the webhook. */
  id: string;
  /** Where messages are sent. A viewer sees only its origin, because its path may be a secret. */
  url: string;
  /** The events that the endpoint is told of. Left out when it is added: all of them. */
  events: readonly (
    | "stale_leases"
    | "history_lost"
    | "contradiction"
    | "cell_silent"
    | "cell_drift"
    | "cron_failed"
    | "credential_expiring"
  )[];
  thresholds: WebhookThresholds;
  /** How many seconds a condition must hold before it fires. 300 by default. */
  for_s: number;
  /** How many seconds it must not hold before it is resolved. 300 by default. */
  resolve_s: number;
  /** False: nothing is evaluated or sent for this endpoint. */
  enabled: boolean;
  /** RFC 3339, in UTC, with milliseconds. */
  created_at: string;
  /** RFC 3339, in UTC, with milliseconds. */
  updated_at: string;
  /** The first of the failed attempts since the last success. Null: the last one succeeded. */
  failing_since: string | null;
  /** Why the last attempt failed. */
  last_error: string | null;
  /** Messages that were delivered. */
  delivered: number;
  /** Attempts that failed. */
  failed_attempts: number;
  /** Messages that were given up. */
  given_up: number;
  /** Messages that wait. */
  queued: number;
  /** When the oldest of them was made. */
  oldest_queued_at: string | null;
}

export interface WebhookChange {
  /**
   * Where messages are sent: an https URL. Its host must be public, unless the coordinator runs with
   * `LEASEHOLD_WEBHOOK_HOSTS=any`.
   */
  url?: string | undefined;
  /** The events that the endpoint is told of. Left out when it is added: all of them. */
  events?:
    | readonly (
        | "stale_leases"
        | "history_lost"
        | "contradiction"
        | "cell_silent"
        | "cell_drift"
        | "cron_failed"
        | "credential_expiring"
      )[]
    | undefined;
  thresholds?: WebhookThresholds | undefined;
  /** How many seconds a condition must hold before it fires. 300 by default. */
  for_s?: number | undefined;
  /** How many seconds it must not hold before it is resolved. 300 by default. */
  resolve_s?: number | undefined;
  /** False: nothing is evaluated or sent for this endpoint. */
  enabled?: boolean | undefined;
  /** Why you do this. The audit keeps it. */
  reason?: string | undefined;
}

/** A message to an endpoint. */
export interface WebhookDelivery {
  /** The `webhook-id` of the message, in every attempt. */
  message_id: string;
  event:
    | "stale_leases"
    | "history_lost"
    | "contradiction"
    | "cell_silent"
    | "cell_drift"
    | "cron_failed"
    | "credential_expiring"
    | "test";
  status: "firing" | "resolved" | "test";
  /** A cell, a key or a part by its id, or `cron` or `test`. */
  subject: string;
  state: "pending" | "delivered" | "given_up";
  attempts: number;
  /** RFC 3339, in UTC, with milliseconds. */
  created_at: string;
  /** Not before this time. Null: there is none. */
  next_attempt_at: string | null;
  finished_at: string | null;
  /** Of the last answer. Null: there was none. */
  http_status: number | null;
  last_error: string | null;
}

export interface WebhookRemoval {
  /** Why you do this. The audit keeps it. */
  reason?: string | undefined;
}

export interface WebhookTest {
  /** Why you do this. The audit keeps it. */
  reason?: string | undefined;
}

/** The thresholds that are not the default ones. */
export interface WebhookThresholds {
  /** Stale leases of one cell. 1 by default. */
  stale_leases?: number | undefined;
  /** Minutes without a report of a cell. 15 by default. */
  cell_silent?: number | undefined;
  /** Drifts of one kind in a cell. 1 by default. */
  cell_drift?: number | undefined;
  /** Days until a key, certificate or authority expires. 7 by default. */
  credential_expiring?: number | undefined;
}

/** The body and the answer of every operation. */
export interface Operations {
  beginLease: {
    body: Batch;
    answer: {
      lease: Lease;
      /**
       * Positions of the lease's shards, by the number of the shard, from which on lookups show the lease.
       * Send that of a name's shard as `min_position` with `GET /v1/route/…`. Absent once the lease was
       * decided some time ago.
       */
      positions?: { readonly [name: string]: number } | undefined;
    };
  };
  getLease: {
    body: undefined;
    answer: {
      lease: Lease;
    };
  };
  listLeases: {
    body: undefined;
    answer: {
      leases: readonly Lease[];
      /** Send it as `page_token` to get the next page. Empty on the last page. */
      next_page_token: string;
    };
  };
  commitLease: {
    body: Decision | undefined;
    answer: {
      lease: Lease;
      /**
       * Positions of the lease's shards, by the number of the shard, from which on lookups show the lease.
       * Send that of a name's shard as `min_position` with `GET /v1/route/…`. Absent once the lease was
       * decided some time ago.
       */
      positions?: { readonly [name: string]: number } | undefined;
    };
  };
  rollbackLease: {
    body: Decision | undefined;
    answer: {
      lease: Lease;
      /**
       * Positions of the lease's shards, by the number of the shard, from which on lookups show the lease.
       * Send that of a name's shard as `min_position` with `GET /v1/route/…`. Absent once the lease was
       * decided some time ago.
       */
      positions?: { readonly [name: string]: number } | undefined;
    };
  };
  renewLease: {
    body: Renewal;
    answer: {
      lease: Lease;
    };
  };
  getRecord: {
    body: undefined;
    answer: {
      record: ClaimRecord | ForeignRecord;
      cell: OwnerCell;
    };
  };
  lookupRecords: {
    body: Lookup;
    answer: {
      results: readonly (LookupResult | UnavailableName)[];
    };
  };
  listRecords: {
    body: undefined;
    answer: {
      /**
       * The time at which the reading began, by the coordinator's clock. RFC 3339, in UTC, with
       * milliseconds.
       */
      as_of: string;
      records: readonly ClaimRecord[];
      /**
       * True: the next page continues with records of the last source id of this page, because that id has
       * more records than fit into a page.
       */
      split: boolean;
      /** Send it as `page_token` to get the next page. Empty on the last page. */
      next_page_token: string;
    };
  };
  exportRecords: { body: undefined; answer: ExportLine };
  digestRecords: {
    body: DigestQuery;
    answer: {
      /**
       * The time at which the reading began, by the coordinator's clock. RFC 3339, in UTC, with
       * milliseconds.
       */
      as_of: string;
      /** One digest per range, in the order of the request. */
      digests: readonly RangeDigest[];
    };
  };
  listChanges: {
    body: undefined;
    answer: {
      /**
       * Of each shard in order. A page does not end within the changes of one position, so it may be larger
       * than `page_size`.
       */
      changes: readonly Change[];
      /**
       * Positions of shards, as pairs `shard:position` with commas between them: everything up to them has
       * been told.
       */
      checkpoint: string;
      /** True: more changes can be read at once. */
      has_more: boolean;
      /**
       * What was read of each shard, from point to point. Usually, `after` is the `through` of the page
       * before. If it has another incarnation than that, the shard has gone back in time between the two
       * pages.
       */
      ranges: readonly {
        shard: number;
        after: HistoryPoint;
        through: HistoryPoint;
      }[];
      /**
       * The shards that could not be read, or have not reached their position in `after`. Their changes
       * follow later: nothing is left out.
       */
      unavailable: readonly number[];
    };
  };
  planTransfer: {
    body: TransferPlanGiven;
    answer: {
      plan: TransferPlan;
    };
  };
  prepareTransfer: {
    body: TransferGiven;
    answer: {
      transfer: Transfer;
    };
  };
  listTransfers: {
    body: undefined;
    answer: {
      transfers: readonly Transfer[];
      /** Send it as `page_token` to get the next page. Empty on the last page. */
      next_page_token: string;
    };
  };
  getTransfer: {
    body: undefined;
    answer: {
      transfer: Transfer;
    };
  };
  acceptTransfer: {
    body: TransferStepGiven | undefined;
    answer: {
      transfer: Transfer;
    };
  };
  reportTransfer: {
    body: TransferReportGiven;
    answer: {
      transfer: Transfer;
    };
  };
  cutTransfer: {
    body: TransferStepGiven | undefined;
    answer: {
      transfer: Transfer;
    };
  };
  abortTransfer: {
    body: TransferStepGiven | undefined;
    answer: {
      transfer: Transfer;
    };
  };
  getRoute: {
    body: undefined;
    answer: {
      cell: OwnerCell;
      /**
       * The epoch of the claim, or of the granted lease that creates it. Each later owner of the name has a
       * larger one. A cell key doesn't get it for another cell's name.
       */
      epoch?: number | undefined;
      /**
       * A hash of the name, as 16 hexadecimal digits, by which reports refer to it. Different names may
       * have the same key.
       */
      key: string;
      /** The number of the name's shard. */
      shard: number;
      /** The shard's position when the name was read. Each change of the shard makes it larger. */
      position: number;
      /** False: a lease holds the name, so the answer may change at any time. Don't keep it. */
      settled: boolean;
      /**
       * The age of the answer in milliseconds when it was sent. A cache adds the time since it sent its
       * question.
       */
      age_ms: number;
    };
  };
  lookupRoutes: {
    body: RouteLookup;
    answer: {
      results: readonly (RouteResult | UnavailableRoute)[];
    };
  };
  getReport: { body: undefined; answer: Report };
  listCellAddresses: {
    body: undefined;
    answer: {
      cells: readonly OwnerCell[];
      /**
       * The age of the answer in milliseconds when it was sent. A cache adds the time since it sent its
       * question.
       */
      age_ms: number;
    };
  };
  classify: {
    body: ClassifyRequest;
    answer: {
      action: "PROXY";
      proxy: {
        /** The host of the cell, with a port if it has one. */
        address: string;
      };
      matched_claim?: ClassifyClaim | undefined;
    };
  };
  takeVerificationSlot: {
    body: undefined;
    answer: {
      slot: VerificationSlot;
    };
  };
  releaseVerificationSlot: {
    body: undefined;
    answer: {
      /** Whether the run still had a slot. */
      released: boolean;
    };
  };
  reportStatus: {
    body: StatusReport;
    answer: {
      status: CellStatus;
    };
  };
  getStatus: {
    body: undefined;
    answer: {
      status: CellStatus | null;
    };
  };
  listCells: {
    body: undefined;
    answer: {
      cells: readonly Cell[];
      /** Send it as `page_token` to get the next page. Empty on the last page. */
      next_page_token: string;
    };
  };
  addCell: {
    body: NewCell;
    answer: {
      cell: Cell;
    };
  };
  changeCell: {
    body: CellChange;
    answer: {
      cell: Cell;
    };
  };
  freezeCell: {
    body: CellStateChange | undefined;
    answer: {
      cell: Cell;
    };
  };
  drainCell: {
    body: CellStateChange | undefined;
    answer: {
      cell: Cell;
    };
  };
  unfreezeCell: {
    body: CellStateChange | undefined;
    answer: {
      cell: Cell;
    };
  };
  mintKey: { body: NewKey; answer: MintedKey };
  listKeys: {
    body: undefined;
    answer: {
      keys: readonly Key[];
      /** Send it as `page_token` to get the next page. Empty on the last page. */
      next_page_token: string;
    };
  };
  revokeKey: {
    body: Revocation | undefined;
    answer: {
      key: Key;
    };
  };
  getIdentities: {
    body: undefined;
    answer: {
      /** Identifies this version of the identities. It grows with each change. */
      version: number;
      /** The issuers whose tokens are accepted. */
      issuers: readonly TokenIssuer[];
      /** The authorities whose client certificates are accepted. */
      authorities: readonly CertificateAuthority[];
      /** When the certificates of the authorities expire, in the same order. */
      authority_expiries: readonly AuthorityExpiry[];
    };
  };
  changeIdentities: {
    body: IdentitiesChange;
    answer: {
      /** Identifies this version of the identities. It grows with each change. */
      version: number;
      /** The issuers whose tokens are accepted. */
      issuers: readonly TokenIssuer[];
      /** The authorities whose client certificates are accepted. */
      authorities: readonly CertificateAuthority[];
      /** When the certificates of the authorities expire, in the same order. */
      authority_expiries: readonly AuthorityExpiry[];
      dry_run: boolean;
      changes: readonly IdentityChange[];
    };
  };
  explainIdentity: { body: IdentityQuestion; answer: ExplainedIdentity };
  listCredentialUses: {
    body: undefined;
    answer: {
      uses: readonly CredentialUse[];
      /** Send it as `page_token` to get the next page. Empty on the last page. */
      next_page_token: string;
    };
  };
  listTypes: {
    body: undefined;
    answer: {
      types: TypeSet;
    };
  };
  getTypes: {
    body: undefined;
    answer: {
      /** Identifies this version of the set. It grows with each change, and when a type comes into use. */
      version: number;
      types: TypeSet;
      /** The types that claims may have. Their entries can no longer be changed. */
      in_use: {
        bucket_types: readonly string[];
        subject_types: readonly string[];
        source_types: readonly string[];
      };
    };
  };
  changeTypes: {
    body: TypesChange;
    answer: {
      /** Identifies this version of the set. It grows with each change, and when a type comes into use. */
      version: number;
      types: TypeSet;
      /** The types that claims may have. Their entries can no longer be changed. */
      in_use: {
        bucket_types: readonly string[];
        subject_types: readonly string[];
        source_types: readonly string[];
      };
      dry_run: boolean;
      changes: readonly TypeChange[];
      /** Only in a dry run. If there are any, the set would be refused. */
      refusals: readonly TypeRefusal[];
    };
  };
  listAudit: {
    body: undefined;
    answer: {
      entries: readonly AuditEntry[];
      /**
       * The list has every change that was made before this time. Null: no run of the cron in the last days
       * has copied the entries of all parts.
       */
      complete_through: string | null;
      /** Send it as `page_token` to get the next page. Empty on the last page. */
      next_page_token: string;
    };
  };
  getPart: {
    body: undefined;
    answer: {
      part: Part;
    };
  };
  reconcilePart: {
    body: PartReconciliation;
    answer: {
      part: Part;
      dry_run: boolean;
      /** For a shard: the cells that have leases which the shard has lost. */
      lost_leases: readonly {
        /** The id of a cell: a decimal int64 above 0. */
        cell_id: string;
        /** Granted leases whose holds are lost. A commit of them takes no name. */
        outstanding: number;
        /** Decided leases among the cell's newest outcomes that the shard has lost. */
        decided: number;
        /** Some of the outstanding leases, at most 10. */
        leases: readonly string[];
      }[];
      /** For a ledger: the leases that are granted again, because a shard has holds of them. */
      rebuilt_leases: readonly {
        shard: number;
        holds: number;
        leases: number;
      }[];
      /** The parts that did not answer. While there are any, only a dry run works. */
      unreachable: readonly string[];
      /** For a ledger: the state of the cell that is left. A later change of it is lost. */
      cell_state?: "ACTIVE" | "DRAINING" | "FROZEN" | "REMOVING" | "REMOVED" | undefined;
      /** For the directory: what the copies in D1 have that the directory has lost. */
      restored?:
        | {
            /** The cells that were missing or older than their copies, by their ids. */
            cells: readonly string[];
            /** The keys whose descriptions were missing. */
            keys: number;
            /** The revocations that were missing. */
            revocations: number;
            /** The types that were missing, different, or not marked as in use. */
            types: readonly string[];
          }
        | undefined;
    };
  };
  finishPart: {
    body: PartFinish;
    answer: {
      part: Part;
    };
  };
  getScrub: { body: undefined; answer: ScrubStatus };
  stepScrub: { body: ScrubStep; answer: ScrubStatus };
  listStaleLeases: {
    body: undefined;
    answer: {
      leases: readonly StaleLease[];
      /**
       * The listing contains every lease that was granted before this time. Null: some cell has never been
       * pulled into the projection.
       */
      last_pulled_at: string | null;
      /** Send it as `page_token` to get the next page. Empty on the last page. */
      next_page_token: string;
    };
  };
  listLimits: {
    body: undefined;
    answer: {
      limits: readonly Limit[];
    };
  };
  getHealth: {
    body: undefined;
    answer: {
      status: "ok";
      version: string;
      /**
       * The versions of hash and canonical form, and the number of shards. They determine which shard
       * stores a name, and never change.
       */
      placement: string;
    };
  };
  getReadiness: {
    body: undefined;
    answer: {
      /** `no_cells`: there is no cell, or all were removed. An operator has to register one. */
      status: "ok" | "no_cells";
      /** The ledgers that don't answer, or have lost history, such as `ledger of cell 7`. */
      failed: readonly string[];
      /** `outdated`: D1 lacks migrations of this version, without which an upgrade can't be finished. */
      d1: "up" | "outdated" | "down";
      /**
       * The migrations that D1 lacks. `npx wrangler d1 migrations apply leasehold --remote` applies them.
       */
      missing_migrations: readonly string[];
      /** The last run of the cron that finished. Null: none, or it cannot be read. */
      last_cron_run: {
        /** RFC 3339, in UTC, with milliseconds. */
        finished_at: string;
        /** Cells whose ledger the run could not reach or copy into D1. */
        cells_failed: number;
      } | null;
    };
  };
}

/** The route of every operation, and the fields that its answer must have. */
export const operations = {
  beginLease: {
    method: "PUT",
    path: "/v1/cells/{cell}/leases/{uuid}",
    shape: {
      lease: {
        uuid: "string",
        cell_id: "string",
        state: "string",
        created_at: "string",
        age_ms: "number",
        counts: { creates: "number", destroys: "number", replaces: "number", missing: "number" },
      },
    },
  },
  getLease: {
    method: "GET",
    path: "/v1/cells/{cell}/leases/{uuid}",
    shape: {
      lease: {
        uuid: "string",
        cell_id: "string",
        state: "string",
        created_at: "string",
        age_ms: "number",
        counts: { creates: "number", destroys: "number", replaces: "number", missing: "number" },
      },
    },
  },
  listLeases: {
    method: "GET",
    path: "/v1/cells/{cell}/leases",
    shape: {
      leases: [
        {
          uuid: "string",
          cell_id: "string",
          state: "string",
          created_at: "string",
          age_ms: "number",
          counts: { creates: "number", destroys: "number", replaces: "number", missing: "number" },
        },
      ],
      next_page_token: "string",
    },
  },
  commitLease: {
    method: "POST",
    path: "/v1/cells/{cell}/leases/{uuid}/commit",
    shape: {
      lease: {
        uuid: "string",
        cell_id: "string",
        state: "string",
        created_at: "string",
        age_ms: "number",
        counts: { creates: "number", destroys: "number", replaces: "number", missing: "number" },
      },
    },
  },
  rollbackLease: {
    method: "POST",
    path: "/v1/cells/{cell}/leases/{uuid}/rollback",
    shape: {
      lease: {
        uuid: "string",
        cell_id: "string",
        state: "string",
        created_at: "string",
        age_ms: "number",
        counts: { creates: "number", destroys: "number", replaces: "number", missing: "number" },
      },
    },
  },
  renewLease: {
    method: "POST",
    path: "/v1/cells/{cell}/leases/{uuid}/renew",
    shape: {
      lease: {
        uuid: "string",
        cell_id: "string",
        state: "string",
        created_at: "string",
        age_ms: "number",
        counts: { creates: "number", destroys: "number", replaces: "number", missing: "number" },
      },
    },
  },
  getRecord: {
    method: "GET",
    path: "/v1/records/{bucket_type}/{value}",
    shape: { record: "any", cell: { id: "string", address: "string" } },
  },
  lookupRecords: { method: "POST", path: "/v1/records/lookup", shape: { results: ["any"] } },
  listRecords: {
    method: "GET",
    path: "/v1/cells/{cell}/records",
    shape: {
      as_of: "string",
      records: [
        {
          uuid: "string",
          bucket: { type: "string", value: "string" },
          subject: { type: "string", id: "string" },
          source: { type: "string", id: "string" },
          cell_id: "string",
          epoch: "number",
          status: "string",
          lease_uuid: "any",
          created_at: "string",
          updated_at: "string",
        },
      ],
      split: "boolean",
      next_page_token: "string",
    },
  },
  exportRecords: { method: "GET", path: "/v1/cells/{cell}/records/export", shape: "any" },
  digestRecords: {
    method: "POST",
    path: "/v1/cells/{cell}/records/digests",
    shape: {
      as_of: "string",
      digests: [{ count: "number", hash: "string", held: "boolean", newest_updated_at: "any" }],
    },
  },
  listChanges: {
    method: "GET",
    path: "/v1/changes",
    shape: {
      changes: [
        {
          id: "string",
          event: "string",
          shard: "number",
          position: "number",
          at: "string",
          cell_id: "string",
          lease_uuid: "string",
          epoch: "number",
        },
      ],
      checkpoint: "string",
      has_more: "boolean",
      ranges: [
        {
          shard: "number",
          after: { incarnation: "number", position: "number" },
          through: { incarnation: "number", position: "number" },
        },
      ],
      unavailable: ["number"],
    },
  },
  planTransfer: {
    method: "POST",
    path: "/v1/transfer-plan",
    shape: {
      plan: {
        from: "string",
        to: "string",
        scope: "string",
        claims: [{ source_type: "string", bucket_type: "string", count: "number" }],
        claims_total: "number",
        present_claims: "any",
        leases: [{ cell_id: "string", uuid: "string" }],
        obstacles: ["string"],
        cursor: "any",
      },
    },
  },
  prepareTransfer: {
    method: "POST",
    path: "/v1/transfers",
    shape: {
      transfer: {
        id: "string",
        uuid: "string",
        from: "string",
        to: "string",
        scope: "string",
        state: "string",
        prepared: { at: "string", age_ms: "number", by: "string", key_id: "any", reason: "any" },
        accepted: "any",
        decided: "any",
        switch_back_of: "any",
        is_rebuilt: "boolean",
        expected: { from: "any", to: "any" },
        reports: { from: "any", to: "any" },
        missing: ["string"],
        unfinished_shards: "any",
      },
    },
  },
  listTransfers: {
    method: "GET",
    path: "/v1/transfers",
    shape: {
      transfers: [
        {
          id: "string",
          uuid: "string",
          from: "string",
          to: "string",
          scope: "string",
          state: "string",
          prepared: { at: "string", age_ms: "number", by: "string", key_id: "any", reason: "any" },
          accepted: "any",
          decided: "any",
          switch_back_of: "any",
          is_rebuilt: "boolean",
          expected: { from: "any", to: "any" },
          reports: { from: "any", to: "any" },
          missing: ["string"],
          unfinished_shards: "any",
        },
      ],
      next_page_token: "string",
    },
  },
  getTransfer: {
    method: "GET",
    path: "/v1/transfers/{id}",
    shape: {
      transfer: {
        id: "string",
        uuid: "string",
        from: "string",
        to: "string",
        scope: "string",
        state: "string",
        prepared: { at: "string", age_ms: "number", by: "string", key_id: "any", reason: "any" },
        accepted: "any",
        decided: "any",
        switch_back_of: "any",
        is_rebuilt: "boolean",
        expected: { from: "any", to: "any" },
        reports: { from: "any", to: "any" },
        missing: ["string"],
        unfinished_shards: "any",
      },
    },
  },
  acceptTransfer: {
    method: "POST",
    path: "/v1/transfers/{id}/accept",
    shape: {
      transfer: {
        id: "string",
        uuid: "string",
        from: "string",
        to: "string",
        scope: "string",
        state: "string",
        prepared: { at: "string", age_ms: "number", by: "string", key_id: "any", reason: "any" },
        accepted: "any",
        decided: "any",
        switch_back_of: "any",
        is_rebuilt: "boolean",
        expected: { from: "any", to: "any" },
        reports: { from: "any", to: "any" },
        missing: ["string"],
        unfinished_shards: "any",
      },
    },
  },
  reportTransfer: {
    method: "POST",
    path: "/v1/transfers/{id}/report",
    shape: {
      transfer: {
        id: "string",
        uuid: "string",
        from: "string",
        to: "string",
        scope: "string",
        state: "string",
        prepared: { at: "string", age_ms: "number", by: "string", key_id: "any", reason: "any" },
        accepted: "any",
        decided: "any",
        switch_back_of: "any",
        is_rebuilt: "boolean",
        expected: { from: "any", to: "any" },
        reports: { from: "any", to: "any" },
        missing: ["string"],
        unfinished_shards: "any",
      },
    },
  },
  cutTransfer: {
    method: "POST",
    path: "/v1/transfers/{id}/cut",
    shape: {
      transfer: {
        id: "string",
        uuid: "string",
        from: "string",
        to: "string",
        scope: "string",
        state: "string",
        prepared: { at: "string", age_ms: "number", by: "string", key_id: "any", reason: "any" },
        accepted: "any",
        decided: "any",
        switch_back_of: "any",
        is_rebuilt: "boolean",
        expected: { from: "any", to: "any" },
        reports: { from: "any", to: "any" },
        missing: ["string"],
        unfinished_shards: "any",
      },
    },
  },
  abortTransfer: {
    method: "POST",
    path: "/v1/transfers/{id}/abort",
    shape: {
      transfer: {
        id: "string",
        uuid: "string",
        from: "string",
        to: "string",
        scope: "string",
        state: "string",
        prepared: { at: "string", age_ms: "number", by: "string", key_id: "any", reason: "any" },
        accepted: "any",
        decided: "any",
        switch_back_of: "any",
        is_rebuilt: "boolean",
        expected: { from: "any", to: "any" },
        reports: { from: "any", to: "any" },
        missing: ["string"],
        unfinished_shards: "any",
      },
    },
  },
  getRoute: {
    method: "GET",
    path: "/v1/route/{bucket_type}/{value}",
    shape: {
      cell: { id: "string", address: "string" },
      key: "string",
      shard: "number",
      position: "number",
      settled: "boolean",
      age_ms: "number",
    },
  },
  lookupRoutes: { method: "POST", path: "/v1/route", shape: { results: ["any"] } },
  getReport: {
    method: "GET",
    path: "/v1/reports/{shard}",
    shape: {
      shard: "number",
      after: "number",
      through: "number",
      held: ["any"],
      has_more: "boolean",
      age_ms: "number",
    },
  },
  listCellAddresses: {
    method: "GET",
    path: "/v1/cells",
    shape: { cells: [{ id: "string", address: "string" }], age_ms: "number" },
  },
  classify: {
    method: "POST",
    path: "/v1/classify",
    shape: { action: "string", proxy: { address: "string" } },
  },
  takeVerificationSlot: {
    method: "PUT",
    path: "/v1/cells/{cell}/verification-slots/{uuid}",
    shape: { slot: { uuid: "string", cell_id: "string", expires_at: "string", expires_in_ms: "number" } },
  },
  releaseVerificationSlot: {
    method: "POST",
    path: "/v1/cells/{cell}/verification-slots/{uuid}/release",
    shape: { released: "boolean" },
  },
  reportStatus: {
    method: "PUT",
    path: "/v1/cells/{cell}/status",
    shape: {
      status: {
        cell_id: "string",
        reported_at: "string",
        age_ms: "number",
        sdk: { name: "string", version: "string" },
      },
    },
  },
  getStatus: { method: "GET", path: "/v1/cells/{cell}/status", shape: { status: "any" } },
  listCells: {
    method: "GET",
    path: "/v1/admin/cells",
    shape: {
      cells: [
        {
          cell_id: "string",
          name: "string",
          address: "string",
          location_hint: "any",
          state: "any",
          outstanding_leases: "any",
          unapplied_decisions: "any",
          stored_bytes: "any",
          removed_at: "any",
          status: "any",
          created_at: "string",
          updated_at: "string",
        },
      ],
      next_page_token: "string",
    },
  },
  addCell: {
    method: "POST",
    path: "/v1/admin/cells",
    shape: {
      cell: {
        cell_id: "string",
        name: "string",
        address: "string",
        location_hint: "any",
        state: "any",
        outstanding_leases: "any",
        unapplied_decisions: "any",
        stored_bytes: "any",
        removed_at: "any",
        status: "any",
        created_at: "string",
        updated_at: "string",
      },
    },
  },
  changeCell: {
    method: "PATCH",
    path: "/v1/admin/cells/{cell}",
    shape: {
      cell: {
        cell_id: "string",
        name: "string",
        address: "string",
        location_hint: "any",
        state: "any",
        outstanding_leases: "any",
        unapplied_decisions: "any",
        stored_bytes: "any",
        removed_at: "any",
        status: "any",
        created_at: "string",
        updated_at: "string",
      },
    },
  },
  freezeCell: {
    method: "POST",
    path: "/v1/admin/cells/{cell}/freeze",
    shape: {
      cell: {
        cell_id: "string",
        name: "string",
        address: "string",
        location_hint: "any",
        state: "any",
        outstanding_leases: "any",
        unapplied_decisions: "any",
        stored_bytes: "any",
        removed_at: "any",
        status: "any",
        created_at: "string",
        updated_at: "string",
      },
    },
  },
  drainCell: {
    method: "POST",
    path: "/v1/admin/cells/{cell}/drain",
    shape: {
      cell: {
        cell_id: "string",
        name: "string",
        address: "string",
        location_hint: "any",
        state: "any",
        outstanding_leases: "any",
        unapplied_decisions: "any",
        stored_bytes: "any",
        removed_at: "any",
        status: "any",
        created_at: "string",
        updated_at: "string",
      },
    },
  },
  unfreezeCell: {
    method: "POST",
    path: "/v1/admin/cells/{cell}/unfreeze",
    shape: {
      cell: {
        cell_id: "string",
        name: "string",
        address: "string",
        location_hint: "any",
        state: "any",
        outstanding_leases: "any",
        unapplied_decisions: "any",
        stored_bytes: "any",
        removed_at: "any",
        status: "any",
        created_at: "string",
        updated_at: "string",
      },
    },
  },
  mintKey: {
    method: "POST",
    path: "/v1/admin/keys",
    shape: {
      id: "string",
      role: "string",
      cell_id: "any",
      created_at: "string",
      expires_at: "string",
      note: "any",
      key: "string",
    },
  },
  listKeys: {
    method: "GET",
    path: "/v1/admin/keys",
    shape: {
      keys: [
        {
          id: "string",
          role: "string",
          cell_id: "any",
          created_at: "string",
          expires_at: "string",
          note: "any",
          revoked_at: "any",
        },
      ],
      next_page_token: "string",
    },
  },
  revokeKey: {
    method: "POST",
    path: "/v1/admin/keys/{id}/revoke",
    shape: {
      key: {
        id: "string",
        role: "string",
        cell_id: "any",
        created_at: "string",
        expires_at: "string",
        note: "any",
        revoked_at: "any",
      },
    },
  },
  getIdentities: {
    method: "GET",
    path: "/v1/admin/identities",
    shape: {
      version: "number",
      issuers: [
        {
          name: "string",
          issuer: "string",
          audience: "string",
          algorithms: ["string"],
          rules: [{ claims: {}, role: "string" }],
        },
      ],
      authorities: [{ name: "string", certificate: "string", rules: [{ role: "string" }] }],
      authority_expiries: [{ name: "string", expires_at: "string" }],
    },
  },
  changeIdentities: {
    method: "PUT",
    path: "/v1/admin/identities",
    shape: {
      version: "number",
      issuers: [
        {
          name: "string",
          issuer: "string",
          audience: "string",
          algorithms: ["string"],
          rules: [{ claims: {}, role: "string" }],
        },
      ],
      authorities: [{ name: "string", certificate: "string", rules: [{ role: "string" }] }],
      authority_expiries: [{ name: "string", expires_at: "string" }],
      dry_run: "boolean",
      changes: [{ entry: "string", change: "string" }],
    },
  },
  explainIdentity: {
    method: "POST",
    path: "/v1/admin/identities/explain",
    shape: { id: "string", role: "any", cell_id: "any", expires_at: "any", refusal: "any" },
  },
  listCredentialUses: {
    method: "GET",
    path: "/v1/admin/credential-uses",
    shape: {
      uses: [
        {
          id: "string",
          kind: "string",
          role: "string",
          cell_id: "any",
          issued_by: "any",
          name: "any",
          expires_at: "any",
          first_used_at: "string",
          last_used_at: "string",
          revoked_at: "any",
        },
      ],
      next_page_token: "string",
    },
  },
  listTypes: {
    method: "GET",
    path: "/v1/types",
    shape: { types: { bucket_types: {}, subject_types: {}, source_types: {} } },
  },
  getTypes: {
    method: "GET",
    path: "/v1/admin/types",
    shape: {
      version: "number",
      types: { bucket_types: {}, subject_types: {}, source_types: {} },
      in_use: { bucket_types: ["string"], subject_types: ["string"], source_types: ["string"] },
    },
  },
  changeTypes: {
    method: "PUT",
    path: "/v1/admin/types",
    shape: {
      version: "number",
      types: { bucket_types: {}, subject_types: {}, source_types: {} },
      in_use: { bucket_types: ["string"], subject_types: ["string"], source_types: ["string"] },
      dry_run: "boolean",
      changes: [{ entry: "string", change: "string", before: "any", after: "any" }],
      refusals: [{ entry: "string", reason: "string" }],
    },
  },
  listAudit: {
    method: "GET",
    path: "/v1/admin/audit",
    shape: {
      entries: [
        {
          id: "string",
          at: "string",
          key_id: "string",
          key_note: "any",
          action: "string",
          cell_id: "any",
          target: "string",
          part: "string",
          reason: "any",
          request_id: "string",
          before: "any",
          after: "any",
        },
      ],
      complete_through: "any",
      next_page_token: "string",
    },
  },
  getPart: {
    method: "GET",
    path: "/v1/admin/parts/{part}",
    shape: { part: { id: "string", state: "string", point: "any", loss: "any" } },
  },
  reconcilePart: {
    method: "POST",
    path: "/v1/admin/parts/{part}/reconcile",
    shape: {
      part: { id: "string", state: "string", point: "any", loss: "any" },
      dry_run: "boolean",
      lost_leases: [{ cell_id: "string", outstanding: "number", decided: "number", leases: ["string"] }],
      rebuilt_leases: [{ shard: "number", holds: "number", leases: "number" }],
      unreachable: ["string"],
    },
  },
  finishPart: {
    method: "POST",
    path: "/v1/admin/parts/{part}/finish",
    shape: { part: { id: "string", state: "string", point: "any", loss: "any" } },
  },
  getScrub: {
    method: "GET",
    path: "/v1/admin/parts/{part}/scrub",
    shape: { part: "string", state: "string", running: "any", last: "any" },
  },
  stepScrub: {
    method: "POST",
    path: "/v1/admin/parts/{part}/scrub",
    shape: { part: "string", state: "string", running: "any", last: "any" },
  },
  listStaleLeases: {
    method: "GET",
    path: "/v1/leases/stale",
    shape: {
      leases: [
        {
          uuid: "string",
          cell_id: "string",
          state: "string",
          created_at: "string",
          age_ms: "number",
          counts: { creates: "number", destroys: "number", replaces: "number", missing: "number" },
          confirmed: "boolean",
        },
      ],
      last_pulled_at: "any",
      next_page_token: "string",
    },
  },
  listLimits: {
    method: "GET",
    path: "/v1/limits",
    shape: {
      limits: [
        {
          name: "string",
          value: "number",
          default: "number",
          unit: "string",
          variable: "string",
          about: "string",
        },
      ],
    },
  },
  getHealth: {
    method: "GET",
    path: "/healthz",
    shape: { status: "string", version: "string", placement: "string" },
  },
  getReadiness: {
    method: "GET",
    path: "/readyz",
    shape: {
      status: "string",
      failed: ["string"],
      d1: "string",
      missing_migrations: ["string"],
      last_cron_run: "any",
    },
  },
} as const;

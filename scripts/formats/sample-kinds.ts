/** The kinds of encoded values that outlive the process that made them. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { ConsoleSessions } from "../../src/coordinator/auth/console-sessions.ts";
import { Hmac } from "../../src/coordinator/auth/secrets.ts";
import { makeKey } from "../../src/coordinator/auth/key.ts";
import { madeKeyId } from "../../src/coordinator/auth/made-key-id.ts";
import type { Principal } from "../../src/coordinator/auth/principal.ts";
import { KeyVerifier } from "../../src/coordinator/auth/verifier.ts";
import { webhookSecret, webhookSignature } from "../../src/coordinator/auth/webhook-signature.ts";
import { initialCursor, readCursor } from "../../src/users/cell/verification/cursor.ts";
import type { VerificationPorts } from "../../src/users/cell/verification/ports.ts";
import { FORMAT_VERSION, type Header, type Line } from "../../src/cli/backup/format.ts";
import { leaseIdOf } from "../../src/cli/backup/lease-id.ts";
import { readBackup } from "../../src/cli/backup/read-backup.ts";
import { readConfig, writeConfig } from "../../src/cli/connection/config-file.ts";
import { canonicalize } from "../../src/common/canonical/canonicalize.ts";
import { DigestSum, digestWordsOf } from "../../src/common/digest.ts";
import { decodePayload, encodePayload } from "../../src/coordinator/kernel/ledger/payload.ts";
import type { Op } from "../../src/coordinator/kernel/messages.ts";
import { entryOf, holdRows, type StoredEntry } from "../../src/coordinator/kernel/shard/hold-entries.ts";
import type { HoldRow } from "../../src/coordinator/kernel/shard/rows.ts";
import { keyHash } from "../../src/coordinator/kernel/key-hash.ts";
import { defaultLimits } from "../../src/common/limits.ts";
import { shardOf } from "../../src/coordinator/kernel/placement.ts";
import { sourceOrder } from "../../src/common/source-order.ts";
import {
  historyHeaderOf,
  readHistoryHeader,
} from "../../src/coordinator/capabilities/loss/edge/history-header.ts";
import { PageTokens } from "../../src/coordinator/api/page-token.ts";
import { inPart } from "../../src/hosts/node/part-tables.ts";
import {
  formatPositions,
  parsePositions,
  positionCookie,
  positionsFromCookie,
} from "../../src/users/router/positions.ts";
import { DATABASE } from "../../src/hosts/standalone/database-file.ts";
import { openState, readState } from "../../src/hosts/workerd/state-file.ts";

export interface Kind {
  /** Writes the value as this code does. */
  make: () => string | Promise<string>;
  /** Reads a value of this kind. Without it, only equal text is right. */
  read?: (text: string) => unknown;
  /** Each value differs, so only reading is compared. */
  isRandom?: true;
}

const NOW_MS = 1_800_000_000_000;
const SECRETS = { current: "the signing secret of the samples", previous: undefined };
const SCOPE = ["listLeases", "operator", null, { cell: "7" }, { state: "GRANTED" }];
const UUID = "0199c0de-0000-7000-8000-000000000001";
const sessions = new ConsoleSessions(SECRETS);
const operator: Principal = {
  role: "operator",
  keyId: UUID,
  expiresAtMs: NOW_MS + 3_600_000,
  cell: null,
  credential: { kind: "key" },
};

const OPS: readonly Op[] = [
  {
    kind: "create",
    index: 0,
    type: 4,
    value: "Ada",
    canonical: "ada",
    shard: 1,
    subject: { type: 4, id: "7" },
    source: { type: 1, id: "7" },
    scope: "9970",
  },
  { kind: "destroy", index: 0, type: 4, value: "grace", canonical: "grace", shard: 0 },
  {
    kind: "replace",
    index: 0,
    type: 4,
    value: "linus",
    canonical: "linus",
    shard: 0,
    subject: { type: 4, id: "8" },
    source: { type: 1, id: "8" },
    epoch: 3,
  },
];

/** The holds of these ops. */
const HOLDS = OPS.map(({ kind, type, value, canonical, subject, source, scope = null }): HoldRow => ({
  bucket_type: type,
  canonical,
  kind,
  cell: "7",
  lease: UUID,
  incarnation: 16_777_217,
  counter: 2,
  epoch: 40,
  held_at_ms: NOW_MS,
  uuid: kind === "destroy" ? null : UUID,
  value: kind === "destroy" ? null : value,
  subject_type: subject?.type ?? null,
  subject_id: subject?.id ?? null,
  source_type: source?.type ?? null,
  source_id: source?.id ?? null,
  source_order: source === undefined ? null : sourceOrder(source.id),
  scope,
  granted_by: null,
}));

/** By name. Another kind of value is another entry. */
export const kinds: Readonly<Record<string, Kind>> = {
  key: {
    make: () =>
      makeKey(
        { v: 1, id: UUID, role: "cell", cell: "7", iat: NOW_MS / 1_000, exp: NOW_MS / 1_000 + 60 },
        new Hmac(SECRETS.current),
      ),
    read: (text) => new KeyVerifier(SECRETS, defaultLimits).verify(text, NOW_MS),
  },
  "id of a certificate or token": { make: () => madeKeyId(new TextEncoder().encode("a certificate")) },
  "page token": {
    make: () => new PageTokens(SECRETS).make(SCOPE, { position: 42 }),
    read: (text) => new PageTokens(SECRETS).read(SCOPE, text),
  },
  "console session": {
    isRandom: true,
    make: () => sessions.start(operator, "operator", NOW_MS),
    read: (text) => sessions.read(text, NOW_MS),
  },
  "webhook secret": { make: () => webhookSecret(SECRETS.current, UUID) },
  "webhook signature": {
    make: () =>
      webhookSignature(SECRETS, { webhookId: UUID, messageId: UUID, timestampS: 1_800_000_000, body: "{}" }),
  },
  "checkpoint of changes": {
    make: () =>
      formatPositions(
        new Map([
          [5, 88],
          [3, 4_711],
        ]),
      ),
    read: (text) => [...(parsePositions(text) ?? [])],
  },
  "cookie of positions": {
    make: () => positionCookie(new Map([[3, 4_711]]), 5),
    read: (text) => [...positionsFromCookie(text)],
  },
  "leasehold-history header": {
    make: () => historyHeaderOf({ incarnation: 16_777_217, position: 42 }),
    read: readHistoryHeader,
  },
  "ops in the row of a lease": {
    make: () => encodePayload(OPS),
    read: decodePayload,
  },
  "holds in the log of a shard": {
    make: () => JSON.stringify(entryOf({ since: 40, part: 0 }, HOLDS)),
    read: (text) => holdRows(JSON.parse(text) as StoredEntry),
  },
  "digest of claims": {
    make: () => {
      const sum = new DigestSum();
      const claim = {
        type: 4,
        canonical: "ada",
        value: "Ada",
        subject: { type: 4, id: "7" },
        source: { type: 1, id: "7" },
      };
      for (const scope of [null, "9970"]) sum.add(digestWordsOf({ ...claim, scope }));
      return sum.hash;
    },
  },
  "canonical names": {
    make: () =>
      ["GitLab-Org/Straße", "ＡＢＣ", "ada"]
        .map((value) => canonicalize({ form: "path", script: "single", case: "folded" }, value, 1_024))
        .map((made) => (made.ok ? made.canonical : "refused"))
        .join(" "),
  },
  "shard of a name": { make: () => [2, 16, 256].map((shards) => shardOf(4, "ada", shards)).join(" ") },
  "hash of a name in reports": { make: () => keyHash({ type: 4, canonical: "ada" }) },
  "order of sources": { make: () => ["7", "007", "42", "x"].map(sourceOrder).join(" ") },
  "lease id of a restore": { make: () => leaseIdOf(["a claim"]) },
  "verification cursor": {
    make: () => JSON.stringify({ ...initialCursor(verification(), true, 3), startedAtMs: NOW_MS }),
    read: async (text) => (await readCursor(verification(text), true)).changes,
  },
  backup: { make: wholeBackup, read: (text) => withFile("backup.jsonl", text, readWholeBackup) },
  "state.json": {
    make: () =>
      withFile("state.json", undefined, async (path) => {
        await openState(dirname(path), "npm run standalone", "2");
        return readFileSync(path, "utf8");
      }),
    read: (text) => withFile("state.json", text, (path) => readState(dirname(path))),
  },
  "database of npm run standalone": {
    make: () => `${DATABASE}: ${inPart("SELECT * FROM lease", "cell-7")}`,
  },
  "contexts of the command line": {
    make: () =>
      withFile("leasehold/config.json", undefined, async (path) => {
        const contexts = { test: { url: "https://leasehold.example.com", key: "lhk_e30.AA" } };
        await writeConfig({ env: configIn(path) }, { current: "test", contexts });
        return readFileSync(path, "utf8");
      }),
    read: (text) => withFile("leasehold/config.json", text, (path) => readConfig({ env: configIn(path) })),
  },
};

const configIn = (path: string): { XDG_CONFIG_HOME: string } => ({ XDG_CONFIG_HOME: dirname(dirname(path)) });

/** What a cursor needs of a verification. */
const verification = (text?: string): VerificationPorts =>
  ({
    tables: [{ source: "RAILS_TABLE_USERS", bucketTypes: ["USERNAMES"] }],
    progress: { load: async () => (text === undefined ? undefined : { text, ageMs: 0 }) },
  }) as unknown as VerificationPorts;

/** A backup of one claim that was renamed meanwhile. */
async function wholeBackup(): Promise<string> {
  const at = new Date(NOW_MS).toISOString();
  const named = (value: string) => ({
    uuid: UUID,
    bucket: { type: "USERNAMES", value } as const,
    subject: { type: "USER", id: "7" } as const,
    source: { type: "RAILS_TABLE_USERS", id: "7" } as const,
  });
  const header: Header = {
    leasehold_backup: FORMAT_VERSION,
    created_at: at,
    checkpoint: "0:40",
    cells: [{ cell_id: "7", created_at: at }],
    source_types: ["RAILS_TABLE_USERS"],
  };
  const types = {
    bucket_types: { USERNAMES: { number: 4 } },
    subject_types: { USER: { number: 4 } },
    source_types: { RAILS_TABLE_USERS: { number: 1 } },
  };
  const lines: Line[] = [
    header,
    { types },
    {
      cell: {
        cell_id: "7",
        name: "cell-7",
        address: "https://cell-7.example.com",
        location_hint: null,
        state: "ACTIVE",
        outstanding_leases: 0,
        unapplied_decisions: 0,
        stored_bytes: 4_096,
        removed_at: null,
        status: null,
        created_at: at,
        updated_at: at,
      },
    },
    { identities: { issuers: [], authorities: [] } },
    {
      revoked_key: {
        id: UUID,
        role: "cell",
        cell_id: "7",
        created_at: at,
        expires_at: at,
        note: null,
        revoked_at: at,
      },
    },
    {
      record: {
        ...named("Ada"),
        cell_id: "7",
        epoch: 3,
        status: "ACTIVE",
        lease_uuid: null,
        created_at: at,
        updated_at: at,
      },
    },
    { records_through: { cell_id: "7", source_type: "RAILS_TABLE_USERS", source_id: null } },
    { leases_through: { cell_id: "7" } },
    {
      change: {
        id: "0:41:0",
        event: "replaced",
        shard: 0,
        position: 41,
        at,
        cell_id: "7",
        lease_uuid: UUID,
        epoch: 4,
        claim: named("Grace"),
      },
    },
    { changes_through: "0:41" },
  ];
  const text = textOf(lines);
  return withFile("backup.jsonl", text, async (path) => {
    const written = await readBackup(path);
    return text + textOf([{ end: { ...written.found, claims: await written.digests() } }]);
  });
}

const textOf = (lines: readonly Line[]): string => lines.map((line) => `${JSON.stringify(line)}\n`).join("");

async function readWholeBackup(path: string): Promise<unknown> {
  const backup = await readBackup(path);
  await backup.check();
  const claims = await Array.fromAsync(backup.claims());
  const { header, typeSet, cells, identities, revokedKeys } = backup;
  return { header, typeSet, cells, identities, revokedKeys, claims };
}

/** Works with a file in a private folder, which is removed afterwards. */
async function withFile<T>(
  name: string,
  text: string | undefined,
  work: (path: string) => Promise<T>,
): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-samples-"));
  try {
    const path = join(folder, name);
    mkdirSync(dirname(path), { recursive: true });
    if (text !== undefined) writeFileSync(path, text, { mode: 0o600 });
    return await work(path);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

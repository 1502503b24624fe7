import { and, asc, eq, getTableColumns, gt, inArray, sql } from "drizzle-orm";
import type { Credential } from "../../../auth/principal.ts";
import { ok, type Result } from "../../../kernel/refusal.ts";
import type { Role } from "../../../kernel/role.ts";
import type { Env } from "../../../env.ts";
import type { CronRun } from "../../../cron/cron-run.ts";
import { Database, inStatements, jsonArray, type JsonRow } from "../../../d1/database.ts";
import { credentialUses, keys } from "../../../d1/schema.ts";

/** The use of a credential in one hour. */
export interface CredentialUse {
  keyId: string;
  role: Role;
  cell: string | null;
  credential: Credential;
  expiresAtMs: number;
  /** The beginning of the hour. */
  usedAtMs: number;
}

/** Saves uses. A row of a credential that was used later stays as it is, so a repetition writes nothing. */
export async function saveCredentialUses(
  database: Database,
  uses: readonly CredentialUse[],
): Promise<Result<null>> {
  for (const part of inStatements(uses.map(rowOf))) {
    const saved = await database.run("save credential uses", (orm) => orm.run(upsert(part)));
    if (!saved.ok) return saved;
  }
  return ok(null);
}

const rowOf = ({ keyId, role, cell, credential, expiresAtMs, usedAtMs }: CredentialUse): JsonRow => ({
  json: JSON.stringify({
    key_id: keyId,
    kind: credential.kind,
    role,
    cell_id: cell,
    issued_by: credential.kind === "key" ? null : credential.issuedBy,
    name: credential.kind === "key" ? null : credential.name,
    issued_at_ms: credential.kind === "certificate" ? credential.issuedAtMs : null,
    expires_at_ms: credential.kind === "token" ? null : expiresAtMs,
    used_at_ms: usedAtMs,
  }),
});

const upsert = (rows: readonly JsonRow[]) => sql`
  INSERT INTO credential_uses
    (key_id, kind, role, cell_id, issued_by, name, issued_at_ms, expires_at_ms,
     first_used_at_ms, last_used_at_ms)
  SELECT value ->> 'key_id', value ->> 'kind', value ->> 'role', value ->> 'cell_id', value ->> 'issued_by',
         value ->> 'name', value ->> 'issued_at_ms', value ->> 'expires_at_ms', value ->> 'used_at_ms',
         value ->> 'used_at_ms'
  FROM json_each(${jsonArray(rows)})
  WHERE true
  ON CONFLICT (key_id) DO UPDATE SET
    role = excluded.role, cell_id = excluded.cell_id, issued_by = excluded.issued_by, name = excluded.name,
    last_used_at_ms = excluded.last_used_at_ms
  WHERE excluded.last_used_at_ms > credential_uses.last_used_at_ms`;

export interface CredentialUseQuery {
  kind?: Credential["kind"];
  keyIds?: readonly string[];
  /** The list continues after this id. */
  after?: string;
  limit: number;
}

export type ListedUse = typeof credentialUses.$inferSelect & {
  /** Null: it is not revoked, or the cron has not copied the revocation yet. */
  revokedAtMs: number | null;
};

/** Shorter than for the cron, because a person waits for this answer. */
const DATABASE_MS = 3_000;

/** Lists uses in the order of the ids. */
export async function listCredentialUses(
  env: Env,
  { kind, keyIds, after, limit }: CredentialUseQuery,
): Promise<Result<{ uses: ListedUse[]; more: boolean }>> {
  const database = new Database(env, { timeoutMs: DATABASE_MS });
  const { keyId } = credentialUses;
  const listed = await database.run("list credential uses", (orm) =>
    orm
      .select({ ...getTableColumns(credentialUses), revokedAtMs: keys.revokedAtMs })
      .from(credentialUses)
      .leftJoin(keys, eq(keys.keyId, keyId))
      .where(
        and(
          kind === undefined ? undefined : eq(credentialUses.kind, kind),
          keyIds === undefined ? undefined : inArray(keyId, [...keyIds]),
          after === undefined ? undefined : gt(keyId, after),
        ),
      )
      .orderBy(asc(keyId))
      .limit(limit + 1),
  );
  if (!listed.ok) return listed;
  return ok({ uses: listed.value.slice(0, limit), more: listed.value.length > limit });
}

/** The rows that are kept: those that were used last. A public issuer may have any number of subjects. */
const MAX_USES = 10_000;

/** Forgets credentials that were not used for as long as a key may be valid, and those beyond 10,000. */
export async function pruneCredentialUses(
  { database, limits }: CronRun,
  nowMs: number,
): Promise<Result<unknown>> {
  const beforeMs = nowMs - limits.keyLifetimeS * 1_000;
  return database.run("prune credential uses", (orm) =>
    orm.run(sql`
      DELETE FROM credential_uses WHERE last_used_at_ms < ${beforeMs} OR key_id IN (
        SELECT key_id FROM credential_uses ORDER BY last_used_at_ms DESC LIMIT -1 OFFSET ${MAX_USES}
      )`),
  );
}

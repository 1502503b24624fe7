import { and, eq, lt, max, sql } from "drizzle-orm";
import type { Cell } from "../../../kernel/directory/messages.ts";
import type { MintedKey } from "../../keys/messages.ts";
import type { TypeSet } from "../../types/messages.ts";
import type { Growth } from "../../growth/messages.ts";
import type { OperationSet } from "../../operations/operations.ts";
import { ok, type Result } from "../../../kernel/refusal.ts";
import { type Database, inStatements, jsonArray, type JsonRow } from "../../../d1/database.ts";
import type { DirectoryWatch } from "../../loss/edge/directory-watch.ts";
import { hasRoom, type CronRun } from "../../../cron/cron-run.ts";
import { DIRECTORY, readSeen } from "../../../d1/directory-copies.ts";
import { growths, keys, operationSets, typeSets } from "../../../d1/schema.ts";

/** Copies the cells. Unchanged rows are not written. D1 keeps a removal that the directory has lost (X5). */
export async function mirrorCells(database: Database, registered: readonly Cell[]): Promise<Result<null>> {
  const rows = registered.map((cell) => ({
    json: JSON.stringify({
      cell_id: cell.cell,
      name: cell.name,
      address: cell.address,
      location_hint: cell.locationHint,
      created_at_ms: cell.createdAtMs,
      updated_at_ms: cell.updatedAtMs,
      removed_at_ms: cell.removedAtMs,
    }),
  }));
  for (const part of inStatements(rows)) {
    const saved = await database.run("save cells", (orm) => orm.run(upsertCells(part)));
    if (!saved.ok) return saved;
  }
  return ok(null);
}

const upsertCells = (rows: readonly JsonRow[]) => sql`
  INSERT INTO cells (cell_id, name, address, location_hint, created_at_ms, updated_at_ms, removed_at_ms)
  SELECT value ->> 'cell_id', value ->> 'name', value ->> 'address', value ->> 'location_hint',
         value ->> 'created_at_ms', value ->> 'updated_at_ms', value ->> 'removed_at_ms'
  FROM json_each(${jsonArray(rows)})
  WHERE true
  ON CONFLICT (cell_id) DO UPDATE SET
    name = excluded.name, address = excluded.address,
    created_at_ms = excluded.created_at_ms, updated_at_ms = excluded.updated_at_ms,
    removed_at_ms = coalesce(cells.removed_at_ms, excluded.removed_at_ms)
  WHERE excluded.updated_at_ms >= cells.updated_at_ms
    AND (excluded.name, excluded.address, excluded.updated_at_ms,
         coalesce(cells.removed_at_ms, excluded.removed_at_ms))
      IS NOT (cells.name, cells.address, cells.updated_at_ms, cells.removed_at_ms)`;

/**
 * Copies the set of types, unless D1 has a newer one. Returns the position of the set that D1 has then. A
 * deployment that has declared none, and uses none, has nothing to copy.
 */
export async function mirrorTypes(
  database: Database,
  { position, entries }: TypeSet,
): Promise<Result<number>> {
  if (position > 0) {
    const saved = await database.run("save types", (orm) =>
      orm
        .insert(typeSets)
        .values({ part: DIRECTORY, position, entries })
        .onConflictDoUpdate({
          target: typeSets.part,
          set: { position, entries },
          setWhere: lt(typeSets.position, position),
        })
        .returning({ position: typeSets.position }),
    );
    if (!saved.ok) return saved;
    if (saved.value.length > 0) return ok(position);
  }
  const seen = await readSeen(database);
  return seen.ok ? ok(seen.value.typesPosition) : seen;
}

/**
 * Copies a growth, unless D1 has a later one. Returns the position of the growth that D1 has then. The end of
 * a growth is not copied: the directory notices a loss by its position alone (G2).
 */
export async function mirrorGrowth(database: Database, growth: Growth): Promise<Result<number>> {
  const { position } = growth;
  const saved = await database.run("save growth", (orm) =>
    orm
      .insert(growths)
      .values({ part: DIRECTORY, position, growth })
      .onConflictDoUpdate({
        target: growths.part,
        set: { position, growth },
        setWhere: lt(growths.position, position),
      })
      .returning({ position: growths.position }),
  );
  if (!saved.ok) return saved;
  if (saved.value.length > 0) return ok(position);
  const seen = await readSeen(database);
  return seen.ok ? ok(seen.value.growthPosition) : seen;
}

/** Notes that a growth was aborted, and whether its copies are dropped, unless D1 has a later growth. */
export const noteAborted = (
  database: Database,
  growth: Growth,
  { isDropped }: { isDropped: boolean },
): Promise<Result<unknown>> =>
  database.run("note aborted growth", (orm) =>
    orm
      .update(growths)
      .set({ growth: { ...growth, isAborted: true, ...(isDropped ? { isDropped } : {}) } })
      .where(and(eq(growths.part, DIRECTORY), eq(growths.position, growth.position))),
  );

/** Copies the operations that run, unless D1 has later ones. A growth has a copy of its own. */
export async function mirrorOperations(
  database: Database,
  { position, operations: running }: OperationSet,
): Promise<Result<unknown>> {
  if (position === 0) return ok(null);
  const operations = running.filter(({ kind }) => kind !== "growth");
  return database.run("save operations", (orm) =>
    orm
      .insert(operationSets)
      .values({ part: DIRECTORY, position, operations })
      .onConflictDoUpdate({
        target: operationSets.part,
        set: { position, operations },
        setWhere: lt(operationSets.position, position),
      }),
  );
}

/** Copies the key changes since the last run, the oldest first. */
export async function mirrorKeys(run: CronRun, directory: DirectoryWatch): Promise<Result<null>> {
  const { database } = run;
  const latest = await database.run("read keys", (orm) =>
    orm.select({ position: max(keys.position) }).from(keys),
  );
  if (!latest.ok) return latest;
  let position = latest.value[0]?.position ?? 0;
  let isNew = false;
  while (hasRoom(run)) {
    const page = await directory.readKeys(position, run.limits.pullRows);
    if (!page.ok) return page;
    // Another run is ahead of this one, or D1 fails. The next run continues.
    if (page.value === null) break;
    const { keys: changed, more } = page.value;
    const fresh = changed.map(rowOf);
    for (const part of inStatements(fresh)) {
      const saved = await database.run("save keys", (orm) => orm.run(upsertKeys(position, part)));
      if (!saved.ok) return saved;
      position = (part.at(-1) ?? part[0]).position;
      isNew = true;
    }
    if (!more) break;
  }
  return isNew ? forgetKeys(run) : ok(null);
}

/** Deletes expired keys beyond `maxKeys`, as the directory does. The latest change stays, as the cursor. */
async function forgetKeys({ database, limits, runtime }: CronRun): Promise<Result<null>> {
  const forgotten = await database.run("forget keys", (orm) =>
    orm.run(sql`
      DELETE FROM keys WHERE key_id IN (
        SELECT key_id FROM keys
        WHERE expires_at_ms <= ${runtime.clock.now()} AND position < (SELECT max(position) FROM keys)
        ORDER BY expires_at_ms LIMIT max(0, (SELECT count(*) FROM keys) - ${limits.maxKeys})
      )`),
  );
  return forgotten.ok ? ok(null) : forgotten;
}

const rowOf = ({
  keyId,
  position,
  role,
  cell,
  note,
  createdAtMs,
  expiresAtMs,
  revokedAtMs,
}: MintedKey & { position: number }) => ({
  position,
  json: JSON.stringify({
    key_id: keyId,
    position,
    role,
    cell_id: cell,
    note,
    created_at_ms: createdAtMs,
    expires_at_ms: expiresAtMs,
    revoked_at_ms: revokedAtMs,
  }),
});

/**
 * Writes nothing if D1 no longer has all changes up to `after`. The cursor is the largest position in D1, so
 * a gap would never be filled. A revocation is final, so D1 keeps one that the directory has lost.
 */
const upsertKeys = (after: number, rows: readonly JsonRow[]) => sql`
  INSERT INTO keys (key_id, position, role, cell_id, note, created_at_ms, expires_at_ms, revoked_at_ms)
  SELECT value ->> 'key_id', value ->> 'position', value ->> 'role', value ->> 'cell_id', value ->> 'note',
         value ->> 'created_at_ms', value ->> 'expires_at_ms', value ->> 'revoked_at_ms'
  FROM json_each(${jsonArray(rows)})
  WHERE (SELECT coalesce(max(position), 0) FROM keys) >= ${after}
  ON CONFLICT (key_id) DO UPDATE SET
    position = excluded.position, role = excluded.role, cell_id = excluded.cell_id, note = excluded.note,
    created_at_ms = excluded.created_at_ms, expires_at_ms = excluded.expires_at_ms,
    revoked_at_ms = coalesce(excluded.revoked_at_ms, keys.revoked_at_ms)
  WHERE excluded.position > keys.position`;

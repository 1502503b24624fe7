import { applyTo, type Patch } from "../sim/bugs.ts";

/** The release that the rig makes up. It speaks format 2. */
export const NEXT_RELEASE = "0.3.0";
export const NEXT_FORMAT = 2;
export const NEXT_FEATURE = "leases can be listed newest first";
/** The path of the feature. */
export const NEXT_PATH = "/v1/cells/{cell}/newest-leases";

/** A migration of D1 that only the next version has. */
export const NEXT_MIGRATION = {
  name: "0001_copied_by.sql",
  sql: "ALTER TABLE open_leases ADD COLUMN copied_by text",
} as const;

const MIGRATION_NAMES = "src/coordinator/d1/migrations.ts";
const LEDGER_SCHEMA = "src/coordinator/kernel/ledger/schema.ts";
const LEDGER = "src/coordinator/kernel/ledger/part.ts";
const LEDGER_STORE = "src/coordinator/kernel/ledger/store.ts";
const KEYS = "src/coordinator/capabilities/keys/ledger.ts";
const SHARD = "src/coordinator/kernel/shard/shard.ts";
const SHARD_LINKS = "src/coordinator/kernel/ledger/shard-links.ts";
const PAGE_TOKEN = "src/coordinator/api/page-token.ts";
const CRON = "src/coordinator/cron/cron.ts";
const PULL = "src/coordinator/capabilities/projection/edge/pull.ts";

/** The changes of the next version, by what they change. */
const pieces: Record<string, readonly Patch[]> = {
  "the list of formats": [
    {
      file: "src/coordinator/kernel/formats.ts",
      find: '[{ release: "0.2.0", features: [] }]',
      put: `[{ release: "0.2.0", features: [] },
        { release: "${NEXT_RELEASE}", features: ["${NEXT_FEATURE}"] }]`,
    },
    { file: "src/coordinator/api/version.ts", find: '"0.2.0"', put: `"${NEXT_RELEASE}"` },
  ],
  // Older code would take the message for one without decisions and prepares, and answer that it has applied
  // all of them.
  "an exchange has its decisions and prepares in another field": [
    {
      file: LEDGER,
      find: "new ShardLinks({ ...stored,",
      put: "new ShardLinks({ ...stored, tables,",
    },
    {
      file: SHARD_LINKS,
      find: "...sightings.own(shard, unchecked), ...content, };",
      put: `...sightings.own(shard, unchecked),
        ...(this.#part.tables.stamp.format < 2
          ? content
          : { decisions: [], prepares: [], parts: [content.decisions, content.prepares] }),
      };`,
    },
    {
      file: SHARD,
      find: "exchange: (message) => exchange(part, message),",
      put: `exchange: (message) => exchange(part, message.parts === undefined ? message :
        { ...message, decisions: message.parts[0], prepares: message.parts[1] }),`,
    },
  ],
  "the answer of an exchange has another field, too": [
    {
      file: SHARD,
      find: "return ok({ seen, point: pointOf(part), prepares, ...(unapplied",
      put: `const isOld = part.tables.stamp.format < 2;
        const answered = isOld ? { prepares } : { prepares: [], answers: prepares };
        return ok({ seen, point: pointOf(part), ...answered, ...(unapplied`,
    },
    {
      file: SHARD_LINKS,
      find: "sightings.see(shard, reply.value, message); return reply;",
      put: `sightings.see(shard, reply.value, message);
        const { answers = reply.value.prepares } = reply.value;
        return { ...reply, value: { ...reply.value, prepares: answers } };`,
    },
  ],
  "a step adds a column of a table of ledgers, and a late one renames another": [
    {
      file: LEDGER_SCHEMA,
      find: "INCARNATION_TABLE, ], ];",
      put: `INCARNATION_TABLE, ],
        ["ALTER TABLE lease ADD COLUMN granted_by TEXT"],
      ];`,
    },
    {
      file: KEYS,
      find: "WITHOUT ROWID`, ], ], methods: onLedgers,",
      put: `WITHOUT ROWID\`, ],
        { format: 2, statements: ["ALTER TABLE revoked_key RENAME COLUMN key_id TO key"] },
      ], methods: onLedgers,`,
    },
    {
      file: LEDGER_STORE,
      find: 'leaseTable.names.join(", ")',
      put: '[...leaseTable.names, "granted_by"].join(", ")',
    },
    {
      file: LEDGER_STORE,
      find: "leaseTable.valuesOf({ ...row, pending })",
      put: `[...leaseTable.valuesOf({ ...row, pending }), "${NEXT_RELEASE}"]`,
    },
    {
      file: KEYS,
      find: "new RevokedKeys(part.ports.sql, part.limits.maxRevokedKeys)",
      put: "new RevokedKeys(part.ports.sql, part.limits.maxRevokedKeys, part.tables)",
    },
    {
      file: KEYS,
      find: "constructor(sql: Sql, limit: number) { this.#sql = sql;",
      put: `#tables;
        get #key() { return this.#tables.stamp.format < 2 ? "key_id" : "key"; }
        constructor(sql: Sql, limit: number, tables) { this.#tables = tables; this.#sql = sql;`,
    },
    {
      file: KEYS,
      find: `"INSERT INTO revoked_key (key_id, expires_at_ms) VALUES (?, ?) ON CONFLICT (key_id) DO NOTHING"`,
      put: "`INSERT INTO revoked_key (${this.#key}, expires_at_ms) VALUES (?, ?) ON CONFLICT DO NOTHING`",
    },
    {
      file: KEYS,
      find: `\`DELETE FROM revoked_key WHERE key_id IN (
        SELECT key_id FROM revoked_key ORDER BY expires_at_ms DESC, key_id`,
      put: `\`DELETE FROM revoked_key WHERE \${this.#key} IN (
        SELECT \${this.#key} FROM revoked_key ORDER BY expires_at_ms DESC, \${this.#key}`,
    },
    {
      file: KEYS,
      find: '"SELECT key_id FROM revoked_key"',
      put: "`SELECT ${this.#key} AS key_id FROM revoked_key`",
    },
  ],
  "a migration adds a column of D1": [
    {
      file: MIGRATION_NAMES,
      find: '"0000_projection.sql"]',
      put: `"0000_projection.sql", "${NEXT_MIGRATION.name}"]`,
    },
    {
      file: "src/hosts/node/migrations.ts",
      find: '"0000_projection.sql": `',
      put: `"${NEXT_MIGRATION.name}": "${NEXT_MIGRATION.sql}", "0000_projection.sql": \``,
    },
    {
      file: CRON,
      find: "const witness = new Witness();",
      put: "const witness = new Witness(); const format = new KnownFormat();",
    },
    {
      file: CRON,
      find: "[new KnownFormat(runtime.speaks), placement, witness]),",
      put: "[format, placement, witness]), format,",
    },
    {
      file: PULL,
      find: "save(database, { cell, granted, decided, told });",
      put: "save(database, { cell, granted, decided, told, format: this.#run.format.format });",
    },
    {
      file: PULL,
      find: "{ cell, granted, decided, told }: SavedPage): Promise<Result<unknown>> {",
      put: "{ cell, granted, decided, told, format }: SavedPage): Promise<Result<unknown>> {",
    },
    {
      file: PULL,
      find: "[insertOpen(cell, granted)]),",
      put: `[insertOpen(cell, granted), ...(format < 2 ? [] :
        [sql\`UPDATE open_leases SET copied_by = '${NEXT_RELEASE}' WHERE cell_id = \${cell}\`])]),`,
    },
  ],
  "a page token has another encoding": [
    {
      file: "src/coordinator/isolate/deployment.ts",
      find: "new PageTokens(secrets)",
      put: "new PageTokens(secrets, () => this.format.format)",
    },
    {
      file: PAGE_TOKEN,
      find: "constructor({ current, previous }: Secrets) {",
      put: "#format; constructor({ current, previous }: Secrets, format) { this.#format = format;",
    },
    {
      file: PAGE_TOKEN,
      find: "const text = JSON.stringify(position);",
      put: "const text = JSON.stringify(this.#format() < 2 ? position : { after: position });",
    },
    {
      file: PAGE_TOKEN,
      find: "return ok(JSON.parse(text) as Position);",
      put: "return ok((JSON.parse(text).after ?? JSON.parse(text)) as Position);",
    },
  ],
  "a route works from format 2 on": [
    {
      file: "src/coordinator/api/contract/lease-routes.ts",
      find: "listLeases: route({",
      put: `listNewestLeases: route({
          group: "leases", method: "GET", path: "${NEXT_PATH}", format: 2, roles: readers,
          summary: "List granted leases, newest first", about: "Lists some leases.",
          params: z.strictObject({ cell: cellId }), query: nothing,
          responses: { 200: { about: "Some leases.", schema: leasePage } }, errors: [tooManyReads],
          example: { params: { cell: "7" } },
        }),
        listLeases: route({`,
    },
    {
      file: "src/coordinator/api/handlers/leases.ts",
      find: "async listLeases(call) {",
      put: `async listNewestLeases(call) {
          const listed = await leaseHandlers.listLeases({ ...call, query: {} });
          if (!listed.ok) return listed;
          const leases = listed.value.body.leases.toReversed();
          return ok({ status: 200, body: { leases, next_page_token: "" } });
        },
        async listLeases(call) {`,
    },
  ],
};

const LATE_STEP = '{ format: 2, statements: ["ALTER TABLE revoked_key RENAME COLUMN key_id TO key"] },';

/** Next versions that break a rule of M9. The rig must fail with each. */
export const bugs: Readonly<Record<string, readonly Patch[]>> = {
  "early-exchanges": [
    { file: SHARD_LINKS, find: "this.#part.tables.stamp.format < 2 ? content", put: "false ? content" },
  ],
  "early-answers": [
    { file: SHARD, find: "const isOld = part.tables.stamp.format < 2;", put: "const isOld = false;" },
  ],
  "early-step": [
    {
      file: KEYS,
      find: LATE_STEP,
      put: '["ALTER TABLE revoked_key RENAME COLUMN key_id TO key"],',
    },
    { file: KEYS, find: 'this.#tables.stamp.format < 2 ? "key_id"', put: 'false ? "key_id"' },
  ],
  "early-tokens": [{ file: PAGE_TOKEN, find: "this.#format() < 2 ? position", put: "false ? position" }],
};

/**
 * The files of the next version that differ from today's. Throws if a piece does not match its file.
 *
 * @param bug one of `bugs`
 */
export function nextSources(bug?: string): ReadonlyMap<string, string> {
  const sources = new Map<string, string>();
  const all = Object.entries(pieces);
  if (bug !== undefined) all.push([bug, bugs[bug] ?? []]);
  for (const [what, patches] of all) for (const patch of patches) applyTo(sources, `"${what}"`, patch);
  return sources;
}

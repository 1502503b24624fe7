import { migrationNames } from "../../coordinator/d1/migrations.ts";
import type { SqliteDatabase } from "./sqlite-database.ts";

/**
 * The text of migrations/*.sql, by name. It is a copy in a module, because bundles have no loader for SQL
 * files. test/hosts/node/migrations.test.ts compares it with the files.
 */
export const migrationTexts: Readonly<Record<(typeof migrationNames)[number], string>> = {
  "0000_projection.sql": `CREATE TABLE \`audit\` (
	\`at_ms\` integer NOT NULL,
	\`id\` text NOT NULL,
	\`part\` text NOT NULL,
	\`key_id\` text NOT NULL,
	\`request_id\` text NOT NULL,
	\`action\` text NOT NULL,
	\`cell_id\` text,
	\`target\` text NOT NULL,
	\`reason\` text,
	\`before\` text,
	\`after\` text,
	PRIMARY KEY(\`at_ms\`, \`id\`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX \`audit_by_key\` ON \`audit\` (\`key_id\`,\`at_ms\`);--> statement-breakpoint
CREATE INDEX \`audit_by_cell\` ON \`audit\` (\`cell_id\`,\`at_ms\`);--> statement-breakpoint
CREATE INDEX \`audit_by_target\` ON \`audit\` (\`target\`,\`at_ms\`);--> statement-breakpoint
CREATE TABLE \`cells\` (
	\`cell_id\` text PRIMARY KEY NOT NULL,
	\`name\` text NOT NULL,
	\`address\` text NOT NULL,
	\`location_hint\` text,
	\`created_at_ms\` integer NOT NULL,
	\`updated_at_ms\` integer NOT NULL,
	\`seen\` text,
	\`last_pulled_at_ms\` integer,
	\`visited_at_ms\` integer,
	\`last_error\` text,
	\`contradicted_at_ms\` integer,
	\`contradictions\` integer DEFAULT 0 NOT NULL,
	\`contradiction_seen_at_ms\` integer,
	\`removed_at_ms\` integer,
	\`closed_at_ms\` integer
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE \`credential_uses\` (
	\`key_id\` text PRIMARY KEY NOT NULL,
	\`kind\` text NOT NULL,
	\`role\` text NOT NULL,
	\`cell_id\` text,
	\`issued_by\` text,
	\`name\` text,
	\`issued_at_ms\` integer,
	\`expires_at_ms\` integer,
	\`first_used_at_ms\` integer NOT NULL,
	\`last_used_at_ms\` integer NOT NULL,
	CONSTRAINT "credential_uses_kind" CHECK(kind IN ('key', 'certificate', 'token'))
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX \`certificates_by_expiry\` ON \`credential_uses\` (\`expires_at_ms\`)
	WHERE kind = 'certificate';
--> statement-breakpoint
CREATE TABLE \`cron_runs\` (
	\`started_at_ms\` integer NOT NULL,
	\`run_id\` text NOT NULL,
	\`scheduled_at_ms\` integer NOT NULL,
	\`finished_at_ms\` integer,
	\`cells_pulled\` integer DEFAULT 0 NOT NULL,
	\`cells_failed\` integer DEFAULT 0 NOT NULL,
	\`leases_upserted\` integer DEFAULT 0 NOT NULL,
	\`error\` text,
	\`audit_copied_at_ms\` integer,
	PRIMARY KEY(\`started_at_ms\`, \`run_id\`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE \`growths\` (
	\`part\` text PRIMARY KEY NOT NULL,
	\`position\` integer NOT NULL,
	\`growth\` text NOT NULL
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE \`keys\` (
	\`key_id\` text PRIMARY KEY NOT NULL,
	\`position\` integer NOT NULL,
	\`role\` text NOT NULL,
	\`cell_id\` text,
	\`note\` text,
	\`created_at_ms\` integer NOT NULL,
	\`expires_at_ms\` integer NOT NULL,
	\`revoked_at_ms\` integer
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX \`keys_by_position\` ON \`keys\` (\`position\`);--> statement-breakpoint
CREATE INDEX \`keys_by_expiry\` ON \`keys\` (\`expires_at_ms\`) WHERE revoked_at_ms IS NULL;
--> statement-breakpoint
CREATE TABLE \`open_leases\` (
	\`cell_id\` text NOT NULL,
	\`created_position\` integer NOT NULL,
	\`uuid\` text NOT NULL,
	\`created_at_ms\` integer NOT NULL,
	\`creates\` integer NOT NULL,
	\`destroys\` integer NOT NULL,
	\`replaces\` integer NOT NULL,
	\`missing\` integer NOT NULL,
	PRIMARY KEY(\`cell_id\`, \`created_position\`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX \`open_leases_by_age\` ON \`open_leases\` (\`created_at_ms\`,\`cell_id\`,\`created_position\`);
--> statement-breakpoint
CREATE TABLE \`operation_sets\` (
	\`part\` text PRIMARY KEY NOT NULL,
	\`position\` integer NOT NULL,
	\`operations\` text NOT NULL
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE \`seen_points\` (
	\`part\` text PRIMARY KEY NOT NULL,
	\`incarnation\` integer NOT NULL,
	\`position\` integer NOT NULL
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE \`type_sets\` (
	\`part\` text PRIMARY KEY NOT NULL,
	\`position\` integer NOT NULL,
	\`entries\` text NOT NULL
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE \`webhook_alerts\` (
	\`webhook_id\` text NOT NULL,
	\`event\` text NOT NULL,
	\`subject\` text NOT NULL,
	\`episode\` text NOT NULL,
	\`state\` text NOT NULL,
	\`held_since_ms\` integer NOT NULL,
	\`cleared_since_ms\` integer,
	\`seen_at_ms\` integer DEFAULT 0 NOT NULL,
	PRIMARY KEY(\`webhook_id\`, \`event\`, \`subject\`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE \`webhook_deliveries\` (
	\`message_id\` text PRIMARY KEY NOT NULL,
	\`webhook_id\` text NOT NULL,
	\`event\` text NOT NULL,
	\`status\` text NOT NULL,
	\`subject\` text NOT NULL,
	\`body\` text NOT NULL,
	\`state\` text NOT NULL,
	\`created_at_ms\` integer NOT NULL,
	\`due_at_ms\` integer NOT NULL,
	\`attempts\` integer DEFAULT 0 NOT NULL,
	\`claimed_by\` text,
	\`claimed_until_ms\` integer DEFAULT 0 NOT NULL,
	\`finished_at_ms\` integer,
	\`http_status\` integer,
	\`last_error\` text
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX \`webhook_deliveries_by_time\` ON \`webhook_deliveries\` (\`webhook_id\`,\`created_at_ms\`);
--> statement-breakpoint
CREATE INDEX \`webhook_deliveries_due\` ON \`webhook_deliveries\` (\`webhook_id\`,\`due_at_ms\`)
	WHERE state = 'pending';
--> statement-breakpoint
CREATE TABLE \`webhooks\` (
	\`webhook_id\` text PRIMARY KEY NOT NULL,
	\`url\` text NOT NULL,
	\`events\` text NOT NULL,
	\`thresholds\` text NOT NULL,
	\`for_s\` integer NOT NULL,
	\`resolve_s\` integer NOT NULL,
	\`is_enabled\` integer NOT NULL,
	\`version\` text NOT NULL,
	\`created_at_ms\` integer NOT NULL,
	\`updated_at_ms\` integer NOT NULL,
	\`delivered\` integer DEFAULT 0 NOT NULL,
	\`failed_attempts\` integer DEFAULT 0 NOT NULL,
	\`given_up\` integer DEFAULT 0 NOT NULL,
	\`failing_since_ms\` integer,
	\`last_error\` text
) STRICT, WITHOUT ROWID;
`,
};

/**
 * Applies the migrations that the projection lacks, and records them in the same table as `wrangler d1
 * migrations apply`. The projection may have those of a newer version, which only add what this one ignores.
 */
export function migrateProjection(d1: SqliteDatabase): void {
  d1.transaction(() => {
    d1.all(
      `CREATE TABLE IF NOT EXISTS d1_migrations (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE,
         applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL)`,
    );
    const rows = d1.all<{ name: string }>("SELECT name FROM d1_migrations");
    const applied = new Set(rows.map(({ name }) => name));
    for (const name of migrationNames) {
      if (applied.has(name)) continue;
      for (const statement of migrationTexts[name].split("--> statement-breakpoint")) d1.all(statement);
      d1.all("INSERT INTO d1_migrations (name) VALUES (?)", name);
    }
  });
}

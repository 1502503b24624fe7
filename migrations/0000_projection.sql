CREATE TABLE `cells` (
	`cell_id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`address` text NOT NULL,
	`location_hint` text,
	`created_at_ms` integer NOT NULL,
	`updated_at_ms` integer NOT NULL,
	`pulled_position` integer DEFAULT 0 NOT NULL,
	`seen` text,
	`last_pulled_at_ms` integer,
	`visited_at_ms` integer,
	`last_error` text
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `cron_runs` (
	`started_at_ms` integer NOT NULL,
	`run_id` text NOT NULL,
	`scheduled_at_ms` integer NOT NULL,
	`finished_at_ms` integer,
	`cells_pulled` integer DEFAULT 0 NOT NULL,
	`cells_failed` integer DEFAULT 0 NOT NULL,
	`leases_upserted` integer DEFAULT 0 NOT NULL,
	`leases_pruned` integer DEFAULT 0 NOT NULL,
	`error` text,
	PRIMARY KEY(`started_at_ms`, `run_id`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `keys` (
	`key_id` text PRIMARY KEY NOT NULL,
	`position` integer NOT NULL,
	`role` text NOT NULL,
	`cell_id` text,
	`note` text,
	`created_at_ms` integer NOT NULL,
	`expires_at_ms` integer NOT NULL,
	`revoked_at_ms` integer
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `keys_by_position` ON `keys` (`position`);--> statement-breakpoint
CREATE TABLE `leases` (
	`cell_id` text NOT NULL,
	`created_position` integer NOT NULL,
	`uuid` text NOT NULL,
	`state` text NOT NULL,
	`position` integer NOT NULL,
	`created_at_ms` integer NOT NULL,
	`decided_at_ms` integer,
	`decided_by` text,
	`reason` text,
	`creates` integer NOT NULL,
	`destroys` integer NOT NULL,
	`replaces` integer NOT NULL,
	`missing` integer NOT NULL,
	PRIMARY KEY(`cell_id`, `created_position`),
	CONSTRAINT "leases_state" CHECK(state IN ('GRANTED', 'COMMITTED', 'ROLLED_BACK'))
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `leases_outstanding` ON `leases` (`created_at_ms`,`cell_id`,`created_position`) WHERE state = 'GRANTED';--> statement-breakpoint
CREATE TABLE `seen_points` (
	`part` text PRIMARY KEY NOT NULL,
	`incarnation` integer NOT NULL,
	`position` integer NOT NULL
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `type_sets` (
	`part` text PRIMARY KEY NOT NULL,
	`position` integer NOT NULL,
	`entries` text NOT NULL
) STRICT, WITHOUT ROWID;

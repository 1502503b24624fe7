CREATE TABLE `open_leases` (
	`cell_id` text NOT NULL,
	`created_position` integer NOT NULL,
	`uuid` text NOT NULL,
	`created_at_ms` integer NOT NULL,
	`creates` integer NOT NULL,
	`destroys` integer NOT NULL,
	`replaces` integer NOT NULL,
	`missing` integer NOT NULL,
	PRIMARY KEY(`cell_id`, `created_position`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `open_leases_by_age` ON `open_leases` (`created_at_ms`,`cell_id`,`created_position`);
--> statement-breakpoint
DROP TABLE `leases`;--> statement-breakpoint
ALTER TABLE `cron_runs` DROP COLUMN `leases_pruned`;--> statement-breakpoint
UPDATE `cells` SET `pulled_position` = 0;--> statement-breakpoint
UPDATE `cells` SET `last_pulled_at_ms` = NULL;
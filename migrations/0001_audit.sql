CREATE TABLE `audit` (
	`at_ms` integer NOT NULL,
	`id` text NOT NULL,
	`part` text NOT NULL,
	`key_id` text NOT NULL,
	`request_id` text NOT NULL,
	`action` text NOT NULL,
	`cell_id` text,
	`target` text NOT NULL,
	`reason` text,
	`before` text,
	`after` text,
	PRIMARY KEY(`at_ms`, `id`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `audit_by_key` ON `audit` (`key_id`,`at_ms`);--> statement-breakpoint
CREATE INDEX `audit_by_cell` ON `audit` (`cell_id`,`at_ms`);--> statement-breakpoint
CREATE INDEX `audit_by_target` ON `audit` (`target`,`at_ms`);--> statement-breakpoint
ALTER TABLE `cron_runs` ADD `audit_copied_at_ms` integer;
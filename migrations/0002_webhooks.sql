CREATE TABLE `webhook_alerts` (
	`webhook_id` text NOT NULL,
	`event` text NOT NULL,
	`subject` text NOT NULL,
	`episode` text NOT NULL,
	`state` text NOT NULL,
	`held_since_ms` integer NOT NULL,
	`cleared_since_ms` integer,
	PRIMARY KEY(`webhook_id`, `event`, `subject`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `webhook_deliveries` (
	`message_id` text PRIMARY KEY NOT NULL,
	`webhook_id` text NOT NULL,
	`event` text NOT NULL,
	`status` text NOT NULL,
	`subject` text NOT NULL,
	`body` text NOT NULL,
	`state` text NOT NULL,
	`created_at_ms` integer NOT NULL,
	`due_at_ms` integer NOT NULL,
	`attempts` integer DEFAULT 0 NOT NULL,
	`claimed_by` text,
	`claimed_until_ms` integer DEFAULT 0 NOT NULL,
	`finished_at_ms` integer,
	`http_status` integer,
	`last_error` text
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `webhook_deliveries_by_time` ON `webhook_deliveries` (`webhook_id`,`created_at_ms`);
--> statement-breakpoint
CREATE INDEX `webhook_deliveries_due` ON `webhook_deliveries` (`webhook_id`,`due_at_ms`)
WHERE state = 'pending';
--> statement-breakpoint
CREATE TABLE `webhooks` (
	`webhook_id` text PRIMARY KEY NOT NULL,
	`url` text NOT NULL,
	`events` text NOT NULL,
	`thresholds` text NOT NULL,
	`for_s` integer NOT NULL,
	`resolve_s` integer NOT NULL,
	`is_enabled` integer NOT NULL,
	`version` text NOT NULL,
	`created_at_ms` integer NOT NULL,
	`updated_at_ms` integer NOT NULL,
	`delivered` integer DEFAULT 0 NOT NULL,
	`failed_attempts` integer DEFAULT 0 NOT NULL,
	`given_up` integer DEFAULT 0 NOT NULL,
	`failing_since_ms` integer,
	`last_error` text
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `keys_by_expiry` ON `keys` (`expires_at_ms`) WHERE revoked_at_ms IS NULL;
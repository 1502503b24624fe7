CREATE TABLE `credential_uses` (
	`key_id` text PRIMARY KEY NOT NULL,
	`kind` text NOT NULL,
	`role` text NOT NULL,
	`cell_id` text,
	`issued_by` text,
	`name` text,
	`issued_at_ms` integer,
	`expires_at_ms` integer,
	`first_used_at_ms` integer NOT NULL,
	`last_used_at_ms` integer NOT NULL,
	CONSTRAINT "credential_uses_kind" CHECK(kind IN ('key', 'certificate', 'token'))
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `certificates_by_expiry` ON `credential_uses` (`expires_at_ms`)
	WHERE kind = 'certificate';
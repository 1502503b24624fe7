ALTER TABLE `cells` ADD `removed_at_ms` integer;--> statement-breakpoint
ALTER TABLE `cells` ADD `closed_at_ms` integer;
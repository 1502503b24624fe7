ALTER TABLE `cells` ADD `contradicted_at_ms` integer;--> statement-breakpoint
ALTER TABLE `cells` ADD `contradictions` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `cells` ADD `contradiction_seen_at_ms` integer;
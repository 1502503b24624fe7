CREATE TABLE `operation_sets` (
	`part` text PRIMARY KEY NOT NULL,
	`position` integer NOT NULL,
	`operations` text NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE `growths` (
	`part` text PRIMARY KEY NOT NULL,
	`position` integer NOT NULL,
	`growth` text NOT NULL
) STRICT, WITHOUT ROWID;
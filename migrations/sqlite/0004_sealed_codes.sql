-- Made from src/storage/tables.ts by `bun run db:generate`; the table is made anew, since codes live for a minute.
ALTER TABLE `logins` ADD `codes_revoked` text;
DROP TABLE `authorization_codes`;

CREATE TABLE `authorization_codes` (
  `code_hash` text PRIMARY KEY NOT NULL,
  `sealed` text,
  `expires_at` integer NOT NULL
) STRICT;
CREATE INDEX `authorization_codes_expires` ON `authorization_codes` (`expires_at`);

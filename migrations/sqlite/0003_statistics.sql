-- Made from src/storage/tables.ts by `bun run db:generate`.

CREATE TABLE `statistics` (
  `organization_id` text NOT NULL,
  `hour` integer NOT NULL,
  `slot` integer NOT NULL,
  `logins` integer NOT NULL,
  `failed_logins` integer NOT NULL,
  `new_users` integer NOT NULL,
  `active_users` integer NOT NULL,
  `daily_users` integer NOT NULL,
  `tokens` integer NOT NULL,
  PRIMARY KEY(`organization_id`, `hour`, `slot`)
) STRICT, WITHOUT ROWID;
ALTER TABLE `users` ADD `active_at` integer;

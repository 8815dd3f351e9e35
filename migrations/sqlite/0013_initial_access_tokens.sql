-- Made from src/storage/tables.ts by `bun run db:generate`.

CREATE TABLE `initial_access_tokens` (
  `id` text PRIMARY KEY NOT NULL,
  `token_hash` text NOT NULL,
  `organization_id` text NOT NULL,
  `uses_left` integer NOT NULL,
  `created_at` integer NOT NULL,
  `expires_at` integer NOT NULL
) STRICT;
CREATE UNIQUE INDEX `initial_access_tokens_hash` ON `initial_access_tokens` (`token_hash`);
CREATE INDEX `initial_access_tokens_expires` ON `initial_access_tokens` (`expires_at`);
ALTER TABLE `dynamic_clients` ADD `organization_id` text;

-- Made from src/storage/tables.ts by `bun run db:generate`.

CREATE TABLE `apis` (
  `id` text PRIMARY KEY NOT NULL,
  `identifier` text NOT NULL,
  `identifier_key` text NOT NULL,
  `name` text NOT NULL,
  `organization_id` text NOT NULL,
  `scopes` text NOT NULL,
  `clients` text NOT NULL,
  `served_by` text NOT NULL,
  `access_token_ttl` integer,
  `access_token_alg` text,
  `open_to_dynamic_clients` integer NOT NULL,
  `created_at` integer NOT NULL,
  `updated_at` integer NOT NULL
) STRICT;
CREATE UNIQUE INDEX `apis_identifier` ON `apis` (`identifier_key`);
CREATE INDEX `apis_created` ON `apis` (`organization_id`,`created_at`,`id`);
CREATE INDEX `apis_all_created` ON `apis` (`created_at`,`id`);
ALTER TABLE `sessions` ADD `resources` text;

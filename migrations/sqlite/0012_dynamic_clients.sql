-- Made from src/storage/tables.ts by `bun run db:generate`.

CREATE TABLE `dynamic_clients` (
  `client_id` text PRIMARY KEY NOT NULL,
  `secret_hash` text,
  `name` text NOT NULL,
  `registration` text NOT NULL,
  `used_at` integer,
  `created_at` integer NOT NULL
) STRICT;
CREATE INDEX `dynamic_clients_used` ON `dynamic_clients` (`used_at`,`created_at`);

-- Made from src/storage/tables.ts by `bun run db:generate`.

CREATE TABLE `logouts` (
  `number` integer PRIMARY KEY NOT NULL,
  `jti` text NOT NULL,
  `client_id` text NOT NULL,
  `organization_id` text NOT NULL,
  `uri` text NOT NULL,
  `alg` text,
  `user_id` text NOT NULL,
  `session_id` text NOT NULL,
  `attempts` integer DEFAULT 0 NOT NULL,
  `created_at` integer NOT NULL,
  `next_attempt_at` integer NOT NULL,
  `expires_at` integer NOT NULL,
  `done_at` integer,
  `failure` text
) STRICT;
CREATE INDEX `logouts_waiting` ON `logouts` (`done_at`,`client_id`,`number`);
CREATE INDEX `logouts_client` ON `logouts` (`client_id`,`created_at`,`jti`);
ALTER TABLE `clients` ADD `backchannel_logout_uri` text;
ALTER TABLE `clients` ADD `backchannel_logout_session_required` integer DEFAULT false NOT NULL;
ALTER TABLE `clients` ADD `backchannel_logout_on_expiry` integer DEFAULT false NOT NULL;
ALTER TABLE `purges` ADD `logout` text;

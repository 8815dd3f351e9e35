-- Made from src/storage/tables.ts by `bun run db:generate`.

CREATE TABLE `webhooks` (
  `id` text PRIMARY KEY NOT NULL,
  `organization_id` text NOT NULL,
  `name` text NOT NULL,
  `url` text NOT NULL,
  `events` text NOT NULL,
  `all_organizations` integer NOT NULL,
  `enabled` integer NOT NULL,
  `signature` text NOT NULL,
  `secret` blob NOT NULL,
  `previous_secret` blob,
  `previous_until` integer,
  `cursor` integer NOT NULL,
  `attempts` integer DEFAULT 0 NOT NULL,
  `failing_since` integer,
  `failure` text,
  `disabled_reason` text,
  `idle` integer NOT NULL,
  `next_attempt_at` integer NOT NULL,
  `created_at` integer NOT NULL,
  `updated_at` integer NOT NULL
) STRICT;
CREATE UNIQUE INDEX `webhooks_name` ON `webhooks` (`organization_id`,`name`);
CREATE INDEX `webhooks_created` ON `webhooks` (`organization_id`,`created_at`,`id`);
CREATE INDEX `webhooks_all_created` ON `webhooks` (`created_at`,`id`);
CREATE INDEX `webhooks_next` ON `webhooks` (`next_attempt_at`);

CREATE TABLE `webhook_deliveries` (
  `number` integer PRIMARY KEY NOT NULL,
  `webhook_id` text NOT NULL,
  `organization_id` text NOT NULL,
  `event_id` text NOT NULL,
  `event_type` text NOT NULL,
  `created_at` integer NOT NULL,
  `duration` integer NOT NULL,
  `status` integer,
  `failure` text,
  `answer` text NOT NULL
) STRICT;
CREATE INDEX `webhook_deliveries_webhook` ON `webhook_deliveries` (`webhook_id`,`number`);
CREATE INDEX `webhook_deliveries_organization` ON `webhook_deliveries` (`organization_id`);

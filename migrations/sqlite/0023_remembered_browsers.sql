-- Made from src/storage/tables.ts by `bun run db:generate`.

CREATE TABLE `remembered_browsers` (
  `id` text PRIMARY KEY NOT NULL,
  `user_id` text NOT NULL,
  `organization_id` text NOT NULL,
  `browser_hash` text NOT NULL,
  `ip_address` text NOT NULL,
  `user_agent` text NOT NULL,
  `created_at` integer NOT NULL,
  `expires_at` integer NOT NULL,
  FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON DELETE cascade
) STRICT;
CREATE UNIQUE INDEX `remembered_browsers_user` ON `remembered_browsers` (`user_id`,`browser_hash`);
CREATE INDEX `remembered_browsers_hash` ON `remembered_browsers` (`browser_hash`);
CREATE INDEX `remembered_browsers_organization` ON `remembered_browsers` (`organization_id`);
CREATE INDEX `remembered_browsers_expires` ON `remembered_browsers` (`expires_at`);

-- Made from src/storage/tables.ts by `bun run db:generate`.

CREATE TABLE `waiting_users` (
  `user_id` text PRIMARY KEY NOT NULL,
  `organization_id` text NOT NULL,
  `created_at` integer NOT NULL,
  FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON DELETE cascade
) STRICT;
CREATE INDEX `waiting_users_created` ON `waiting_users` (`organization_id`,`created_at`,`user_id`);
CREATE INDEX `waiting_users_all_created` ON `waiting_users` (`created_at`,`user_id`);
ALTER TABLE `invitations` ADD `is_registration` integer DEFAULT false NOT NULL;

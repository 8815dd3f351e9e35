-- Made from src/storage/tables.ts by `bun run db:generate`.

CREATE TABLE `pictures` (
  `user_id` text PRIMARY KEY NOT NULL,
  `organization_id` text NOT NULL,
  `hash` text NOT NULL,
  `type` text NOT NULL,
  `body` blob NOT NULL,
  FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON DELETE cascade
) STRICT;
CREATE UNIQUE INDEX `pictures_hash` ON `pictures` (`hash`);
ALTER TABLE `users` ADD `picture` text;

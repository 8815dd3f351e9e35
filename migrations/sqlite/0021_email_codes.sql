-- Made from src/storage/tables.ts by `bun run db:generate`.

CREATE TABLE `email_codes` (
  `user_id` text PRIMARY KEY NOT NULL,
  `code_hash` text NOT NULL,
  `request_hash` text NOT NULL,
  `tries` integer NOT NULL,
  `expires_at` integer NOT NULL,
  FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON DELETE cascade
) STRICT;
CREATE INDEX `email_codes_expires` ON `email_codes` (`expires_at`);

-- Made from src/storage/tables.ts by `bun run db:generate`.

CREATE TABLE `terms_acceptances` (
  `user_id` text NOT NULL,
  `organization_id` text NOT NULL,
  `version` text NOT NULL,
  `accepted_at` integer NOT NULL,
  PRIMARY KEY(`user_id`, `version`),
  FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON DELETE cascade
) STRICT, WITHOUT ROWID;

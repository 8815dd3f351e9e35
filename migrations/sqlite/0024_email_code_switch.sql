-- Made from src/storage/tables.ts by `bun run db:generate`.
ALTER TABLE `users` ADD `email_code` integer DEFAULT true NOT NULL;

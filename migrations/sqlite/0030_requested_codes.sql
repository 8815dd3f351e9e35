-- Made from src/storage/tables.ts by `bun run db:generate`.
ALTER TABLE `email_codes` ADD `requested_at` integer DEFAULT 0 NOT NULL;

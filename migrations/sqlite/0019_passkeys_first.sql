-- Made from src/storage/tables.ts by `bun run db:generate`.
ALTER TABLE `users` ADD `passkey_declined_at` integer;
ALTER TABLE `authorization_requests` ADD `recovered_by` text;
ALTER TABLE `factors` ADD `alone` integer DEFAULT false NOT NULL;

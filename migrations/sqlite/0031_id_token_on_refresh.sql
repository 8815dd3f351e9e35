-- Made from src/storage/tables.ts by `bun run db:generate`.
ALTER TABLE `clients` ADD `id_token_on_refresh` integer DEFAULT false NOT NULL;
ALTER TABLE `sessions` ADD `authentication` text;

-- Made from src/storage/tables.ts by `bun run db:generate`.
ALTER TABLE `clients` ADD `allowed_roles` text DEFAULT '[]' NOT NULL;
ALTER TABLE `clients` ADD `allowed_groups` text DEFAULT '[]' NOT NULL;

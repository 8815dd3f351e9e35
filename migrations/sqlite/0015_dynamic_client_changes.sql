-- Made from src/storage/tables.ts by `bun run db:generate`.
ALTER TABLE `dynamic_clients` ADD `changed_at` integer;

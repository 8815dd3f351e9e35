-- Made from src/storage/tables.ts by `bun run db:generate`.
ALTER TABLE `logins` ADD `recorded_at` integer;

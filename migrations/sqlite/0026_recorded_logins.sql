-- Made from src/storage/tables.ts by `bun run db:generate`.
ALTER TABLE `logins` ADD `recorded_at` integer;
-- Earlier logins count as recorded, because nearly all of them have an event.
UPDATE `logins` SET `recorded_at` = `signed_in_at`;

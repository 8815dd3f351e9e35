-- Made from src/storage/tables.ts by `bun run db:generate`.
ALTER TABLE `invitations` ADD `lifetime` integer DEFAULT 0 NOT NULL;
-- An invitation that was sent again has a later expiry, so the difference may be too large. 30 days are the maximum.
UPDATE `invitations` SET `lifetime` = min(`expires_at` - `created_at`, 2592000000);

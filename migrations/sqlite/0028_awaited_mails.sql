-- Made from src/storage/tables.ts by `bun run db:generate`.
CREATE INDEX `mails_awaited` ON `mails` (`next_attempt_at`) WHERE kind IN ('reset_password', 'sign_in_code', 'verify_email', 'registration');

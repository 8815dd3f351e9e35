-- Made from src/storage/tables.ts by `bun run db:generate`.
ALTER TABLE "email_codes" ADD COLUMN "requested_at" bigint DEFAULT 0 NOT NULL;

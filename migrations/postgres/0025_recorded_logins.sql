-- Made from src/storage/tables.ts by `bun run db:generate`.
ALTER TABLE "logins" ADD COLUMN "recorded_at" bigint;

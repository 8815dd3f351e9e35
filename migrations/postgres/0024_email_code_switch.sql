-- Made from src/storage/tables.ts by `bun run db:generate`.
ALTER TABLE "users" ADD COLUMN "email_code" boolean DEFAULT true NOT NULL;

-- Made from src/storage/tables.ts by `bun run db:generate`.
ALTER TABLE "clients" ADD COLUMN "id_token_on_refresh" boolean DEFAULT false NOT NULL;
ALTER TABLE "sessions" ADD COLUMN "authentication" text;

-- Made from src/storage/tables.ts by `bun run db:generate`.
ALTER TABLE "clients" ADD COLUMN "claims" text DEFAULT '{}' NOT NULL;

-- Made from src/storage/tables.ts by `bun run db:generate`.
ALTER TABLE "dynamic_clients" ADD COLUMN "changed_at" bigint;

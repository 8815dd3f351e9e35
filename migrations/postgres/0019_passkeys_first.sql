-- Made from src/storage/tables.ts by `bun run db:generate`.
ALTER TABLE "users" ADD COLUMN "passkey_declined_at" bigint;
ALTER TABLE "authorization_requests" ADD COLUMN "recovered_by" text;
ALTER TABLE "factors" ADD COLUMN "alone" boolean DEFAULT false NOT NULL;

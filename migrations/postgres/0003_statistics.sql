-- Made from src/storage/tables.ts by `bun run db:generate`.

CREATE TABLE "statistics" (
  "organization_id" text COLLATE "C" NOT NULL,
  "hour" bigint NOT NULL,
  "slot" bigint NOT NULL,
  "logins" bigint NOT NULL,
  "failed_logins" bigint NOT NULL,
  "new_users" bigint NOT NULL,
  "active_users" bigint NOT NULL,
  "daily_users" bigint NOT NULL,
  "tokens" bigint NOT NULL,
  CONSTRAINT "statistics_organization_id_hour_slot_pk" PRIMARY KEY("organization_id","hour","slot")
);
ALTER TABLE "users" ADD COLUMN "active_at" bigint;

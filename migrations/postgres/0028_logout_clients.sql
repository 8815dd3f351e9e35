-- Made from src/storage/tables.ts by `bun run db:generate`.
DROP INDEX "logouts_waiting";
DROP INDEX "logouts_client";
ALTER TABLE "logouts" ADD COLUMN "client_created_at" bigint DEFAULT 0 NOT NULL;
ALTER TABLE "logouts" ADD COLUMN "slug" text DEFAULT '' NOT NULL;
CREATE INDEX "logouts_waiting" ON "logouts" ("done_at","client_id","client_created_at","number");
CREATE INDEX "logouts_client" ON "logouts" ("client_id","client_created_at","created_at","jti");
-- Waiting logouts belong to the client of today if they are younger than it.
UPDATE "logouts" SET
  "client_created_at" = coalesce((SELECT "created_at" FROM "clients" c WHERE c."client_id" = "logouts"."client_id" AND c."organization_id" = "logouts"."organization_id" AND c."created_at" <= "logouts"."created_at"), 0),
  "slug" = coalesce((SELECT "slug" FROM "organizations" WHERE "id" = "logouts"."organization_id"), '');
-- The first waiting logout of each client is due. Until now only the first one of each id was.
UPDATE "logouts" SET "next_attempt_at" = "created_at"
  WHERE "next_attempt_at" = 9007199254740991
  AND "number" IN (SELECT min("number") FROM "logouts" WHERE "done_at" IS NULL GROUP BY "client_id", "client_created_at");

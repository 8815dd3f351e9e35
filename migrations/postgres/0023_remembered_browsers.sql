-- Made from src/storage/tables.ts by `bun run db:generate`.

CREATE TABLE "remembered_browsers" (
  "id" text COLLATE "C" PRIMARY KEY NOT NULL,
  "user_id" text COLLATE "C" NOT NULL,
  "organization_id" text COLLATE "C" NOT NULL,
  "browser_hash" text COLLATE "C" NOT NULL,
  "ip_address" text COLLATE "C" NOT NULL,
  "user_agent" text COLLATE "C" NOT NULL,
  "created_at" bigint NOT NULL,
  "expires_at" bigint NOT NULL
);
CREATE UNIQUE INDEX "remembered_browsers_user" ON "remembered_browsers" ("user_id","browser_hash");
CREATE INDEX "remembered_browsers_hash" ON "remembered_browsers" ("browser_hash");
CREATE INDEX "remembered_browsers_organization" ON "remembered_browsers" ("organization_id");
CREATE INDEX "remembered_browsers_expires" ON "remembered_browsers" ("expires_at");
ALTER TABLE "remembered_browsers" ADD CONSTRAINT "remembered_browsers_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE cascade;

-- Made from src/storage/tables.ts by `bun run db:generate`.

CREATE TABLE "apis" (
  "id" text COLLATE "C" PRIMARY KEY NOT NULL,
  "identifier" text COLLATE "C" NOT NULL,
  "identifier_key" text COLLATE "C" NOT NULL,
  "name" text COLLATE "C" NOT NULL,
  "organization_id" text COLLATE "C" NOT NULL,
  "scopes" text COLLATE "C" NOT NULL,
  "clients" text COLLATE "C" NOT NULL,
  "served_by" text COLLATE "C" NOT NULL,
  "access_token_ttl" bigint,
  "access_token_alg" text COLLATE "C",
  "open_to_dynamic_clients" boolean NOT NULL,
  "created_at" bigint NOT NULL,
  "updated_at" bigint NOT NULL
);
ALTER TABLE "sessions" ADD COLUMN "resources" text;
CREATE UNIQUE INDEX "apis_identifier" ON "apis" ("identifier_key");
CREATE INDEX "apis_created" ON "apis" ("organization_id","created_at","id");
CREATE INDEX "apis_all_created" ON "apis" ("created_at","id");

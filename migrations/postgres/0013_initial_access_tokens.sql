-- Made from src/storage/tables.ts by `bun run db:generate`.

CREATE TABLE "initial_access_tokens" (
  "id" text COLLATE "C" PRIMARY KEY NOT NULL,
  "token_hash" text COLLATE "C" NOT NULL,
  "organization_id" text COLLATE "C" NOT NULL,
  "uses_left" bigint NOT NULL,
  "created_at" bigint NOT NULL,
  "expires_at" bigint NOT NULL
);
ALTER TABLE "dynamic_clients" ADD COLUMN "organization_id" text;
CREATE UNIQUE INDEX "initial_access_tokens_hash" ON "initial_access_tokens" ("token_hash");
CREATE INDEX "initial_access_tokens_expires" ON "initial_access_tokens" ("expires_at");

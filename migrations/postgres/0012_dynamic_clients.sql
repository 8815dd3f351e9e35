-- Made from src/storage/tables.ts by `bun run db:generate`.

CREATE TABLE "dynamic_clients" (
  "client_id" text COLLATE "C" PRIMARY KEY NOT NULL,
  "secret_hash" text COLLATE "C",
  "name" text COLLATE "C" NOT NULL,
  "registration" text COLLATE "C" NOT NULL,
  "used_at" bigint,
  "created_at" bigint NOT NULL
);
CREATE INDEX "dynamic_clients_used" ON "dynamic_clients" ("used_at","created_at");

-- Made from src/storage/tables.ts by `bun run db:generate`.

CREATE TABLE "login_domains" (
  "domain" text COLLATE "C" PRIMARY KEY NOT NULL,
  "organization_id" text COLLATE "C" NOT NULL
);
CREATE INDEX "login_domains_organization" ON "login_domains" ("organization_id");

-- Made from src/storage/tables.ts by `bun run db:generate`; the table is made anew, since codes live for a minute.
ALTER TABLE "logins" ADD COLUMN "codes_revoked" text;
DROP TABLE "authorization_codes";

CREATE TABLE "authorization_codes" (
  "code_hash" text COLLATE "C" PRIMARY KEY NOT NULL,
  "sealed" text COLLATE "C",
  "expires_at" bigint NOT NULL
);
CREATE INDEX "authorization_codes_expires" ON "authorization_codes" ("expires_at");

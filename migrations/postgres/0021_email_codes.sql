-- Made from src/storage/tables.ts by `bun run db:generate`.

CREATE TABLE "email_codes" (
  "user_id" text COLLATE "C" PRIMARY KEY NOT NULL,
  "code_hash" text COLLATE "C" NOT NULL,
  "request_hash" text COLLATE "C" NOT NULL,
  "tries" bigint NOT NULL,
  "expires_at" bigint NOT NULL
);
CREATE INDEX "email_codes_expires" ON "email_codes" ("expires_at");
ALTER TABLE "email_codes" ADD CONSTRAINT "email_codes_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE cascade;

-- Made from src/storage/tables.ts by `bun run db:generate`.

CREATE TABLE "terms_acceptances" (
  "user_id" text COLLATE "C" NOT NULL,
  "organization_id" text COLLATE "C" NOT NULL,
  "version" text COLLATE "C" NOT NULL,
  "accepted_at" bigint NOT NULL,
  CONSTRAINT "terms_acceptances_user_id_version_pk" PRIMARY KEY("user_id","version")
);
ALTER TABLE "terms_acceptances" ADD CONSTRAINT "terms_acceptances_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE cascade;

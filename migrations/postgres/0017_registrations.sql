-- Made from src/storage/tables.ts by `bun run db:generate`.

CREATE TABLE "waiting_users" (
  "user_id" text COLLATE "C" PRIMARY KEY NOT NULL,
  "organization_id" text COLLATE "C" NOT NULL,
  "created_at" bigint NOT NULL
);
ALTER TABLE "invitations" ADD COLUMN "is_registration" boolean DEFAULT false NOT NULL;
CREATE INDEX "waiting_users_created" ON "waiting_users" ("organization_id","created_at","user_id");
CREATE INDEX "waiting_users_all_created" ON "waiting_users" ("created_at","user_id");
ALTER TABLE "waiting_users" ADD CONSTRAINT "waiting_users_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE cascade;

-- Made from src/storage/tables.ts by `bun run db:generate`.

CREATE TABLE "pictures" (
  "user_id" text COLLATE "C" PRIMARY KEY NOT NULL,
  "organization_id" text COLLATE "C" NOT NULL,
  "hash" text COLLATE "C" NOT NULL,
  "type" text COLLATE "C" NOT NULL,
  "body" "bytea" NOT NULL
);
ALTER TABLE "users" ADD COLUMN "picture" text;
CREATE UNIQUE INDEX "pictures_hash" ON "pictures" ("hash");
ALTER TABLE "pictures" ADD CONSTRAINT "pictures_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE cascade;

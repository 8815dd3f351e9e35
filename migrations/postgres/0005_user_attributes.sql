-- Made from src/storage/tables.ts by `bun run db:generate`.

CREATE TABLE "user_attributes" (
  "user_id" text COLLATE "C" NOT NULL,
  "organization_id" text COLLATE "C" NOT NULL,
  "name" text COLLATE "C" NOT NULL,
  "value_hash" text COLLATE "C" NOT NULL,
  CONSTRAINT "user_attributes_user_id_name_value_hash_pk" PRIMARY KEY("user_id","name","value_hash")
);
ALTER TABLE "clients" ADD COLUMN "attributes" text DEFAULT '{}' NOT NULL;
CREATE INDEX "user_attributes_value" ON "user_attributes" ("name","value_hash","organization_id","user_id");
ALTER TABLE "user_attributes" ADD CONSTRAINT "user_attributes_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE cascade;

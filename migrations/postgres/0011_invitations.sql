-- Made from src/storage/tables.ts by `bun run db:generate`.

CREATE TABLE "invitations" (
  "id" text COLLATE "C" PRIMARY KEY NOT NULL,
  "organization_id" text COLLATE "C" NOT NULL,
  "delivery" text COLLATE "C" NOT NULL,
  "user_id" text COLLATE "C",
  "email" text COLLATE "C",
  "link_hash" text COLLATE "C",
  "roles" text COLLATE "C" NOT NULL,
  "groups" text COLLATE "C" NOT NULL,
  "max_uses" bigint NOT NULL,
  "uses" bigint NOT NULL,
  "locale" text COLLATE "C" NOT NULL,
  "created_by" text COLLATE "C",
  "created_at" bigint NOT NULL,
  "expires_at" bigint NOT NULL,
  "withdrawn_at" bigint
);

CREATE TABLE "invitation_uses" (
  "invitation_id" text COLLATE "C" NOT NULL,
  "user_id" text COLLATE "C" NOT NULL,
  "accepted_at" bigint NOT NULL,
  CONSTRAINT "invitation_uses_invitation_id_user_id_pk" PRIMARY KEY("invitation_id","user_id")
);
CREATE UNIQUE INDEX "invitations_link" ON "invitations" ("link_hash");
CREATE INDEX "invitations_created" ON "invitations" ("organization_id","created_at","id");
CREATE INDEX "invitations_all_created" ON "invitations" ("created_at","id");
CREATE INDEX "invitations_expires" ON "invitations" ("expires_at");
CREATE INDEX "invitations_user" ON "invitations" ("user_id");
CREATE INDEX "invitation_uses_user" ON "invitation_uses" ("user_id");
ALTER TABLE "invitations" ADD CONSTRAINT "invitations_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE cascade;
ALTER TABLE "invitation_uses" ADD CONSTRAINT "invitation_uses_invitation_id_invitations_id_fk" FOREIGN KEY ("invitation_id") REFERENCES "invitations"("id") ON DELETE cascade;
ALTER TABLE "invitation_uses" ADD CONSTRAINT "invitation_uses_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE cascade;

-- Made from src/storage/tables.ts by `bun run db:generate`.

CREATE TABLE `invitations` (
  `id` text PRIMARY KEY NOT NULL,
  `organization_id` text NOT NULL,
  `delivery` text NOT NULL,
  `user_id` text,
  `email` text,
  `link_hash` text,
  `roles` text NOT NULL,
  `groups` text NOT NULL,
  `max_uses` integer NOT NULL,
  `uses` integer NOT NULL,
  `locale` text NOT NULL,
  `created_by` text,
  `created_at` integer NOT NULL,
  `expires_at` integer NOT NULL,
  `withdrawn_at` integer,
  FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON DELETE cascade
) STRICT;
CREATE UNIQUE INDEX `invitations_link` ON `invitations` (`link_hash`);
CREATE INDEX `invitations_created` ON `invitations` (`organization_id`,`created_at`,`id`);
CREATE INDEX `invitations_all_created` ON `invitations` (`created_at`,`id`);
CREATE INDEX `invitations_expires` ON `invitations` (`expires_at`);
CREATE INDEX `invitations_user` ON `invitations` (`user_id`);

CREATE TABLE `invitation_uses` (
  `invitation_id` text NOT NULL,
  `user_id` text NOT NULL,
  `accepted_at` integer NOT NULL,
  PRIMARY KEY(`invitation_id`, `user_id`),
  FOREIGN KEY (`invitation_id`) REFERENCES `invitations`(`id`) ON DELETE cascade,
  FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON DELETE cascade
) STRICT, WITHOUT ROWID;
CREATE INDEX `invitation_uses_user` ON `invitation_uses` (`user_id`);

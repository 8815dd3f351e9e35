-- Made from src/storage/tables.ts by `bun run db:generate`.

CREATE TABLE `login_domains` (
  `domain` text PRIMARY KEY NOT NULL,
  `organization_id` text NOT NULL
) STRICT;
CREATE INDEX `login_domains_organization` ON `login_domains` (`organization_id`);

-- Made from src/storage/tables.ts by `bun run db:generate`.

CREATE TABLE `user_attributes` (
  `user_id` text NOT NULL,
  `organization_id` text NOT NULL,
  `name` text NOT NULL,
  `value_hash` text NOT NULL,
  PRIMARY KEY(`user_id`, `name`, `value_hash`),
  FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON DELETE cascade
) STRICT, WITHOUT ROWID;
CREATE INDEX `user_attributes_value` ON `user_attributes` (`name`,`value_hash`,`organization_id`,`user_id`);
ALTER TABLE `clients` ADD `attributes` text DEFAULT '{}' NOT NULL;

-- Made from src/storage/tables.ts by `bun run db:generate`.
ALTER TABLE `clients` ADD `logo` text;
ALTER TABLE `clients` ADD `client_uri` text;
ALTER TABLE `clients` ADD `policy_uri` text;
ALTER TABLE `clients` ADD `tos_uri` text;
ALTER TABLE `clients` ADD `initiate_login_uri` text;
CREATE INDEX `clients_startable` ON `clients` (`organization_id`,`name`,`client_id`) WHERE (client_uri IS NOT NULL OR initiate_login_uri IS NOT NULL);

-- Made from src/storage/tables.ts by `bun run db:generate`.
DROP INDEX `consents_client`;
CREATE INDEX `consents_client` ON `consents` (`client_id`,`organization_id`);
CREATE INDEX `dynamic_clients_created` ON `dynamic_clients` (`created_at`,`client_id`);

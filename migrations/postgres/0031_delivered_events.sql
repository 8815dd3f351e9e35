-- Made from src/storage/tables.ts by `bun run db:generate`.
CREATE INDEX "webhook_deliveries_event" ON "webhook_deliveries" ("event_id");

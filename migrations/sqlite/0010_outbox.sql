-- Made from src/storage/tables.ts by `bun run db:generate`.
CREATE INDEX `logouts_next` ON `logouts` (`next_attempt_at`);

-- Of each client only the oldest waiting logout is due.
UPDATE `logouts` SET `next_attempt_at` = 9007199254740991
  WHERE done_at IS NOT NULL OR number > (
    SELECT min(head.number) FROM logouts AS head WHERE head.client_id = logouts.client_id AND head.done_at IS NULL
  );

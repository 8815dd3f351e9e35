// Refuses a second `bun run start`, because its build would replace the executable of the running server.

import { existsSync } from 'node:fs'
import { listen } from '#src/cli/listen.ts'
import { loadConfig } from '#src/config.ts'
import { silentLog } from '#src/lib/log.ts'
import { lockAround } from '#src/storage/sqlite/lock.ts'

try {
  const { config } = loadConfig(process.env)
  const open = () => listen(config, silentLog, () => new Response())
  const isLocal = !config.database_url && existsSync(config.data_dir)
  const [listener, unlock] = isLocal ? lockAround(config.data_dir, open) : [open(), () => {}]
  await listener.stop()
  unlock()
} catch (error) {
  const { message, exit_code = 1 } = error as Error & { exit_code?: number }
  console.error(`gatehouse: ${message}`)
  process.exit(exit_code)
}

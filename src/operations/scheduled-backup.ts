import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { environmentOfOthers } from '#src/config.ts'
import type { Context } from '#src/context.ts'
import { parseDuration } from '#src/lib/duration.ts'
import { iso } from '#src/lib/text.ts'
import { readSettings } from './settings.ts'

/** Command that runs this program: the executable, or Bun with the source. */
const program = import.meta.dir.startsWith('/$bunfs')
  ? [process.execPath]
  : [process.execPath, join(import.meta.dir, '../main.ts')]

const isBackup = (name: string): boolean => /^gatehouse-\d{8}T\d{6}Z\.db$/.test(name)
/** True for a file that an interrupted backup left, or that SQLite keeps beside it. */
const isPartial = (name: string): boolean => /^gatehouse-\d{8}T\d{6}Z\.db\.partial/.test(name)

/** `gatehouse-20260131T080000Z.db`, so that names sort by time. */
const nameAt = (now: number): string => `gatehouse-${iso(now).replace(/\.\d+/, '').replace(/[-:]/g, '')}.db`

/**
 * Makes a due backup and removes the oldest beyond `backup_keep`. A child process copies the database, so
 * that no request waits for the disk.
 *
 * @throws Error when the backup fails, which the log repeats with each round
 */
export const scheduledBackup = async ({ config, store, clock, log }: Context): Promise<void> => {
  const { backup_interval, backup_keep } = await store.read(readSettings)
  if (backup_interval === null) return
  const folder = resolve(config.data_dir, 'backups')
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const made = () => readdirSync(folder).filter(isBackup).sort()
  const now = clock.now()
  if ((made().at(-1) ?? '') > nameAt(now - (parseDuration(backup_interval) ?? 0))) return
  for (const name of readdirSync(folder).filter(isPartial)) rmSync(join(folder, name))
  const file = join(folder, nameAt(now))
  const child = Bun.spawn([...program, 'backup', file], {
    env: {
      ...environmentOfOthers(),
      GATEHOUSE_DATA_DIR: resolve(config.data_dir),
      ...(config.database_url && { GATEHOUSE_DATABASE_URL: config.database_url }),
    },
    stdout: 'ignore',
    stderr: 'pipe',
  })
  const [code, errors] = await Promise.all([child.exited, new Response(child.stderr).text()])
  if (code !== 0) throw new Error(`the scheduled backup failed: ${errors.trim()}`)
  log.info({ event: 'backup', file })
  for (const name of made().slice(0, -backup_keep)) rmSync(join(folder, name))
}

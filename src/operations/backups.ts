import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statfsSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join, resolve } from 'node:path'
import { z } from 'zod'
import { record } from '#src/audit/record.ts'
import { type Config, environmentOfOthers } from '#src/config.ts'
import type { Context } from '#src/context.ts'
import { count, time } from '#src/directory/fields.ts'
import { example } from '#src/http/example.ts'
import { type AdminRoute, route, writeAs } from '#src/http/guard.ts'
import { conflict } from '#src/lib/app-error.ts'
import { DEFAULT_ORGANIZATION } from '#src/lib/ids.ts'
import { isAlive, runningProgram } from '#src/lib/program.ts'
import { iso } from '#src/lib/text.ts'
import { backupLock } from '#src/storage/data-dir.ts'
import { DATABASE_FILE } from '#src/storage/open.ts'
import { backupSize } from '#src/storage/sqlite/backup.ts'
import { readSettings } from './settings.ts'

const isBackup = (name: string): boolean => /^gatehouse-\d{8}T\d{6}Z\.db$/.test(name)
/** True for the unfinished file of a backup, and for SQLite's log of such a file. */
const isPartial = (name: string): boolean => /^gatehouse-\d{8}T\d{6}Z\.db\.partial/.test(name)

/** Returns a name such as `gatehouse-20260131T080000Z.db`. Names of this form sort by time. */
export const backupName = (now: number): string =>
  `gatehouse-${iso(now).replace(/\.\d+/, '').replace(/[-:]/g, '')}.db`

const folderOf = ({ data_dir }: Config): string => resolve(data_dir, 'backups')

const filesOf = (config: Config): string[] =>
  existsSync(folderOf(config)) ? readdirSync(folderOf(config)) : []

/**
 * Returns the unfinished files in two groups: a process still writes to the `live` files, and interrupted
 * backups left the `left` files. The name of a file contains the id of the process that writes it. After a
 * restart of a container another process may have the same id. A file that has not changed since the start of
 * this server is therefore `left`.
 */
const partialsOf = (config: Config): { live?: string[]; left?: string[] } =>
  Object.groupBy(
    filesOf(config)
      .filter(isPartial)
      .map(name => join(folderOf(config), name)),
    path => {
      const pid = Number(/\.partial-(\d+)/.exec(path)?.[1])
      const changed_at = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0
      return pid && changed_at >= performance.timeOrigin && isAlive(pid) ? 'live' : 'left'
    },
  )

/** Returns the names of the backups, oldest first. */
export const backupNames = (config: Config): string[] => filesOf(config).filter(isBackup).sort()

/** Empty file that exists when the latest backup has failed. All workers read this file. */
const failureOf = (config: Config): string => join(folderOf(config), '.failed')

/** Returns the time at which the latest backup failed. Returns 0 if the latest backup did not fail. */
export const failedAt = (config: Config): number =>
  statSync(failureOf(config), { throwIfNoEntry: false })?.mtimeMs ?? 0

const noteFailure = (config: Config, now: number): void => {
  try {
    writeFileSync(failureOf(config), '', { mode: 0o600 })
    utimesSync(failureOf(config), new Date(now), new Date(now))
  } catch {
    // If the folder cannot be written to, no pause after the failure is needed: the next backup fails too,
    // before it reads the database.
  }
}

const mb = (bytes: number): number => Math.floor(bytes / 1e6)

/** Bytes that a backup leaves free on the disk, because SQLite's log can grow to this size. */
const RESERVE = 64 * 1024 * 1024

/**
 * Makes the folder, and removes the unfinished files of interrupted backups. Returns the reason why no backup
 * can begin. Returns undefined when a backup can begin. A backup of SQLite is refused if it does not fit on
 * the disk: it would fill the disk, and the writes of the server would fail until the backup fails too. The
 * size of a PostgreSQL backup is not known in advance.
 */
const prepare = (config: Config): string | undefined => {
  const folder = folderOf(config)
  try {
    if (!existsSync(folder)) mkdirSync(folder, { mode: 0o700 })
    accessSync(folder, constants.W_OK | constants.X_OK)
    for (const path of partialsOf(config).left ?? []) rmSync(path, { force: true })
  } catch (error) {
    return `The folder of the backups cannot be used: ${(error as Error).message}.`
  }
  const database = join(config.data_dir, DATABASE_FILE)
  if (config.database_url || !existsSync(database)) return undefined
  const { bavail, bsize } = statfsSync(folder)
  const [free, needed] = [bavail * bsize, backupSize(database) + RESERVE]
  return free < needed
    ? `The backup needs ${mb(needed)} MB of free space in ${folder}, but only ${mb(free)} MB are free.`
    : undefined
}

/**
 * Makes a backup, and removes old backups until `keep` remain. A backup whose name has a later time than the
 * new backup was made while the clock was ahead. Such a backup is not removed, and `keep` does not count it.
 * A child process copies the database, so that no request waits for the disk.
 *
 * @throws Error when the backup fails; no older backup is removed in this case
 */
export const makeBackup = async ({ config, clock, log, backups }: Context, keep: number): Promise<void> => {
  const folder = folderOf(config)
  const now = clock.now()
  const made = backupName(now)
  const file = join(folder, made)
  backups.add(file)
  try {
    const obstacle = prepare(config)
    if (obstacle) throw new Error(obstacle)
    const child = Bun.spawn([...runningProgram(), 'backup', file], {
      env: {
        ...environmentOfOthers(),
        GATEHOUSE_DATA_DIR: resolve(config.data_dir),
        ...(config.database_url && { GATEHOUSE_DATABASE_URL: config.database_url }),
      },
      stdout: 'ignore',
      stderr: 'pipe',
    })
    const [code, errors] = await Promise.all([child.exited, new Response(child.stderr).text()])
    if (code !== 0) throw new Error(`the backup failed: ${errors.trim()}`)
    rmSync(failureOf(config), { force: true })
  } catch (error) {
    noteFailure(config, clock.now())
    throw error
  } finally {
    backups.delete(file)
  }
  log.info({ event: 'backup', file })
  const upToMade = backupNames(config).filter(name => name <= made)
  for (const name of upToMade.slice(0, -keep)) rmSync(join(folder, name))
}

const Backups = z
  .object({
    running: z.boolean().describe('Whether a backup is being made.'),
    data: z
      .array(
        z.object({
          name: z.string().describe('File below `backups` in the data directory.'),
          bytes: count.describe('Size of the file.'),
          created_at: time.describe('Time at which the backup began.'),
        }),
      )
      .describe('Backups, newest first.'),
  })
  .meta({
    id: 'Backups',
    description: 'Backups in the data directory of the server that answers the request.',
    example: {
      running: false,
      data: [{ name: 'gatehouse-20260131T080000Z.db', bytes: 4_194_304, created_at: example.time }],
    },
  })

const timeOf = (name: string): string =>
  name.replace(/^gatehouse-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z\.db$/, '$1-$2-$3T$4:$5:$6.000Z')

const listBackups = ({ config, backups }: Context): z.output<typeof Backups> => ({
  running: backups.size > 0 || partialsOf(config).live !== undefined,
  data: backupNames(config)
    .reverse()
    .map(name => ({
      name,
      bytes: statSync(join(folderOf(config), name), { throwIfNoEntry: false })?.size ?? 0,
      created_at: timeOf(name),
    })),
})

const inProgress = () => conflict('A backup is being made.')

/**
 * Runs `begin` and then makes a backup, both under the lock of backups. Resolves as soon as the backup has
 * begun.
 *
 * @throws AppError 409 when another backup is being made, or no backup can begin
 */
const beginBackup = async (context: Context, begin: () => Promise<unknown>): Promise<void> => {
  const { config, store, log, backups } = context
  const folder = folderOf(config)
  const begun = Promise.withResolvers<void>()
  const work = async (): Promise<void> => {
    const { backup_keep } = await store.read(readSettings)
    // With SQLite the lock excludes nothing, but only one server runs, so its own `backups` suffice.
    if (backups.size > 0) throw inProgress()
    const obstacle = prepare(config)
    if (obstacle) throw conflict(obstacle)
    // While this backup begins, another call is refused before it records that it has begun one.
    backups.add(folder)
    let made: Promise<void>
    try {
      await begin()
      made = makeBackup(context, backup_keep)
    } finally {
      backups.delete(folder)
    }
    begun.resolve()
    await made.catch(error => log.error({ event: 'backup', err: error }))
  }
  // These calls change nothing if the backup has begun, because `begun` is then settled. Otherwise another
  // server holds the lock, or `work` has thrown.
  store.exclusively(backupLock(config.data_dir), work).then(() => begun.reject(inProgress()), begun.reject)
  return begun.promise
}

/**
 * Returns the routes that list and start backups. No route downloads a backup, because a stolen token must
 * not give away all users and password hashes.
 */
export const backupRoutes = (context: Context): AdminRoute[] => [
  route({
    id: 'listBackups',
    method: 'GET',
    path: '/backups',
    permission: 'settings:read',
    instance_only: true,
    summary: 'List the backups of this server',
    status: 200,
    answer: Backups,
    handle: async () => listBackups(context),
  }),
  route({
    id: 'startBackup',
    method: 'POST',
    path: '/backups',
    permission: 'settings:update',
    instance_only: true,
    fresh: true,
    summary: 'Begin a backup in the data directory of this server; the list of backups shows whether it runs',
    status: 202,
    answer: Backups,
    errors: [409],
    conflict: 'A backup is being made, there is no room for one, or its folder cannot be used.',
    handle: async ({ caller, client_info }) => {
      await beginBackup(context, () =>
        writeAs(context, caller, tx =>
          record(context, tx, {
            type: 'admin.settings_changed',
            actor: { id: caller.id, email: caller.email },
            target_id: 'backups',
            target_type: 'settings',
            organization_id: DEFAULT_ORGANIZATION,
            client_info,
            metadata: { action: 'started' },
          }),
        ),
      )
      return listBackups(context)
    },
  }),
]

import { readdirSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Config, ConfigError } from '#src/config.ts'
import { type DevFile, readDevFile } from '#src/dev/dev-file.ts'
import { hasDatabase } from './last-start.ts'

/**
 * True while the process of the server runs. Only root and the OS user of the server can read its `dev.json`,
 * and both may signal the server. A process that this user may not signal has only got the id of a server
 * that has died.
 */
export const isRunning = ({ pid }: DevFile): boolean => {
  try {
    return pid !== null && process.kill(pid, 0)
  } catch {
    return false
  }
}

/**
 * Returns the development server whose data a command reads. If `--data-dir` is given, or the database of the
 * settings exists, this is the development server of the data directory. Otherwise it is the running server
 * that was started last ({@link latestRunning}). Returns undefined when the data directory is not that of a
 * development server.
 *
 * @param isNamed true when `--data-dir` names the directory
 * @throws ConfigError when no directory is named, and there is neither an instance nor a running server
 */
export const developmentServer = (config: Config, isNamed: boolean): DevFile | undefined => {
  if (isNamed || hasDatabase(config)) return readDevFile(config.data_dir)
  const running = latestRunning()
  if (running) return running
  throw new ConfigError(
    `${config.data_dir}: no instance is found here, and no development server is running on a temporary directory. Start \`gatehouse dev\`, or name the directory of the server with --data-dir.`,
  )
}

/**
 * Returns the settings that open the database of a development server. The database is always SQLite, and its
 * master key is always in the data directory.
 */
export const withDevelopment = (config: Config, { url, data_dir }: DevFile): Config => ({
  ...config,
  url,
  data_dir,
  database_url: undefined,
  master_key: undefined,
})

/** Returns the running development server that this OS user started last on a temporary data directory. */
export const latestRunning = (): DevFile | undefined =>
  readdirSync(tmpdir())
    .filter(name => name.startsWith('gatehouse-dev-'))
    .map(name => join(tmpdir(), name))
    .map(path => ({ path, found: statSync(path, { throwIfNoEntry: false }) }))
    .filter(({ found }) => found?.uid === process.getuid?.())
    .sort((a, b) => (b.found?.mtimeMs ?? 0) - (a.found?.mtimeMs ?? 0))
    .map(({ path }) => readDevFile(path))
    .find(file => file && isRunning(file))

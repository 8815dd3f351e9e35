import { realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { ConfigError, loadConfig } from '#src/config.ts'
import { silentLog } from '#src/lib/log.ts'
import { exportSeed, renderSeed } from '#src/seed/export.ts'
import { openExisting } from './instance.ts'
import { write } from './print.ts'

/** Error codes of a wrong path, which is a mistake in the command line. */
const WRONG_PATH = ['ENOENT', 'ENOTDIR', 'EISDIR', 'EACCES']

/** Writes the file that `apply` reads. A file with secrets is readable only by its owner. */
export const exportInstance = async (
  file: string | undefined,
  options: { config?: string; secrets?: boolean; pictures?: boolean },
): Promise<void> => {
  const { config } = loadConfig(process.env, options.config)
  const instance = await openExisting(config, silentLog)
  try {
    const text = renderSeed(await exportSeed(instance, options))
    if (file === undefined) write(text)
    else save(file, text, options.secrets ? 0o600 : 0o644)
  } finally {
    await instance.store.close()
  }
}

/**
 * Replaces the file atomically. An earlier export stays until the new export is complete. The new export is a
 * new file, so that a process that has the old file open cannot read the new secrets.
 */
const save = (file: string, text: string, mode: number): void => {
  let partial: string | undefined
  try {
    const found = statSync(file, { throwIfNoEntry: false })
    if (found && !found.isFile()) {
      // A pipe or terminal cannot be replaced by a rename.
      writeFileSync(file, text)
      return
    }
    const target = found ? realpathSync(file) : file
    const name = `${target}.partial-${process.pid}`
    rmSync(name, { force: true })
    writeFileSync(name, '', { mode, flag: 'wx' })
    partial = name
    writeFileSync(name, text, { flush: true })
    renameSync(name, target)
  } catch (error) {
    if (partial) rmSync(partial, { force: true })
    const { code = '', message } = error as NodeJS.ErrnoException
    const Kind = WRONG_PATH.includes(code) ? ConfigError : Error
    throw new Kind(`${file}: cannot be written: ${message}.`)
  }
}

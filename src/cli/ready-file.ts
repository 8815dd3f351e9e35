import { accessSync, constants, existsSync, lstatSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { ConfigError } from '#src/config.ts'

/**
 * Removes the ready file of an earlier start, because a reader would take it for that of this start. A
 * device, a pipe or a link stays.
 *
 * @throws ConfigError when the file cannot be written
 */
export const prepareReadyFile = (file: string): void => {
  try {
    accessSync(dirname(file), constants.W_OK)
    if (lstatSync(file, { throwIfNoEntry: false })?.isFile()) rmSync(file)
  } catch (error) {
    throw new ConfigError(
      `--ready-file: ${file} cannot be written (${(error as NodeJS.ErrnoException).code}).`,
    )
  }
}

/** Writes the ready file. A new file appears with its content, because a reader waits for the file. */
export const writeReadyFile = (file: string, line: string): void => {
  const path = existsSync(file) ? file : `${file}.new`
  writeFileSync(path, line, { mode: 0o600 })
  if (path !== file) renameSync(path, file)
}

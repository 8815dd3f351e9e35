import { type Config, loadConfig, settings } from '#src/config.ts'
import { print } from './print.ts'

/**
 * Prints each setting with its value and source. Secrets are hidden on a terminal, because the terminal would
 * keep them in its scrollback. Output to a file or a program contains the secrets unless `--redacted` is set.
 */
export const configPrint = async (options: { config?: string; redacted?: boolean }): Promise<void> => {
  const { config, sources, warnings } = loadConfig(process.env, options.config)
  const hide = options.redacted || process.stdout.isTTY
  const rows = (Object.keys(settings) as (keyof Config)[]).map(name => {
    const value = config[name]
    const shown = value === undefined ? '–' : typeof value === 'object' ? plain(value) : String(value)
    return [
      name,
      hide && value !== undefined && 'secret' in settings[name] ? '••••' : shown,
      sources[name],
    ] as const
  })
  const width = (column: 0 | 1) => Math.max(...rows.map(row => row[column].length))
  for (const [name, value, source] of rows)
    print(`${name.padEnd(width(0))}  ${value.padEnd(Math.min(width(1), 60))}  ${source}`)
  for (const warning of warnings) console.error(`warning: ${warning}`)
}

/** Formats a list or map as it is written in an environment variable. */
const plain = (value: object): string =>
  Array.isArray(value)
    ? value.join(',') || '–'
    : Object.entries(value)
        .map(([name, text]) => `${name}=${encodeURIComponent(text)}`)
        .join(',')

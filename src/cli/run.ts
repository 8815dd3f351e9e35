import { Command, CommanderError, Option } from 'commander'
import { settings } from '#src/config.ts'
import { VERSION } from '#src/lib/version.ts'
import { type CommandRow, commands } from './commands.ts'

export const program = (): Command => {
  const gatehouse = new Command('gatehouse')
    .description('A multi-tenant identity server in one executable.')
    .version(VERSION, '-V, --version')
    .option('--config <file>', 'settings file (YAML or JSON); the environment beats it')
    .exitOverride()
    .showSuggestionAfterError()
  for (const row of commands) add(gatehouse, row)
  return gatehouse.addHelpText('after', settingsHelp)
}

const add = (gatehouse: Command, { name, about, hidden = false, run, ...row }: CommandRow): void => {
  const path = name.split(' ')
  const group = path.slice(0, -1).reduce((above, word) => {
    const found = above.commands.find(command => command.name() === word)
    if (!found) throw new Error(`the group of ${name} has no row before it`)
    return found
  }, gatehouse)
  const command = group.command(path.at(-1) ?? '', { hidden }).description(about)
  for (const [spelled, meaning] of row.arguments ?? []) command.argument(spelled, meaning)
  for (const option of row.options ?? [])
    if (option instanceof Option) command.addOption(option)
    else command.option(...option)
  // commander's last two arguments are the options and the command.
  if (run)
    command.action((...given) => run({ ...gatehouse.opts(), ...command.opts() }, ...given.slice(0, -2)))
}

const settingsHelp = (): string => {
  const rows = Object.entries(settings).map(
    ([name, { about }]) => `  GATEHOUSE_${name.toUpperCase().padEnd(22)} ${about}`,
  )
  return `
Settings (environment, or the file of --config with the names in lower case and without the prefix;
every secret also as ..._FILE):
${rows.join('\n')}

Exit codes:
  0 done, 1 failed (check, doctor: something is wrong), 2 wrong use or setting, 75 in use by another server: try
  again later, 78 database or master key cannot be used

First steps:
  gatehouse serve              makes its keys, its database and a link to create the first admin
  gatehouse user link          prints that link again
  gatehouse guide              explains everything, a page a subject`
}

/** Runs a command; the exit code is one of those that `gatehouse help` lists. */
export const run = async (args: string[]): Promise<number> => {
  const gatehouse = program()
  try {
    await gatehouse.parseAsync(args, { from: 'user' })
    return Number(process.exitCode ?? 0)
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
    const { withLocation: located } = await import('./located.ts')
    const { message, exit_code = 1 } = (await located(error, gatehouse.opts())) as Error & {
      exit_code?: number
    }
    console.error(`gatehouse: ${message}`)
    if (exit_code === 1 && process.env.GATEHOUSE_LOG_LEVEL === 'debug') console.error(error)
    return exit_code
  }
}

import { Argument, Command, CommanderError, Option } from 'commander'
import { ConfigError, settings } from '#src/config.ts'
import { VERSION_LINE } from '#src/lib/version.ts'
import { type CommandRow, commands } from './commands.ts'
import { ABOUT_ALL, type CommandCall } from './direct-call.ts'
import { exitCodes } from './exit-codes.ts'
import { print } from './print.ts'

/**
 * Returns the commands that begin with the word `first`. Returns all commands when no command begins with
 * `first`, or when `first` is a command such as `man`, whose output describes all commands.
 */
const rowsFor = (first: string | undefined): readonly CommandRow[] => {
  const own = commands.filter(({ name }) => name.split(' ')[0] === first)
  return own.length > 0 && !ABOUT_ALL.includes(first ?? '') ? own : commands
}

/**
 * Builds the command line parser.
 *
 * @param first the first word of the command line. The parser gets only the commands that begin with this
 * word, because adding all commands costs as much CPU time as the start of the runtime. Default: all commands
 */
export const program = (first?: string): Command => {
  const gatehouse = new Command('gatehouse')
    .description('A multi-tenant identity server in one executable.')
    .version(VERSION_LINE, '-V, --version')
    .option('--config <file>', 'settings file (YAML or JSON); environment variables take precedence')
    .exitOverride()
    .showSuggestionAfterError()
    .showHelpAfterError('`gatehouse help` lists all commands.')
    .configureOutput({ outputError: (text, write) => write(withRemedy(text)) })
  for (const row of rowsFor(first)) add(gatehouse, row)
  gatehouse
    .command('help [subject...]')
    .description('print the help of the program, of a command, or of the `settings`')
    .action((subject: string[]) => print(helpOf(gatehouse, subject)))
  return gatehouse.addHelpText('after', context => `\n${settingsHelp(context)}\n\n${otherHelp(context)}`)
}

const add = (gatehouse: Command, { name, about, hidden = false, run, ...row }: CommandRow): void => {
  const path = name.split(' ')
  const group = path.slice(0, -1).reduce((above, word) => {
    const found = above.commands.find(command => command.name() === word)
    if (!found) throw new Error(`${name}: no earlier row defines its group`)
    return found
  }, gatehouse)
  const command = group
    .command(path.at(-1) ?? '', { hidden })
    .description(about)
    .showHelpAfterError(`\`gatehouse ${name} --help\` lists ${run ? 'its options' : 'its commands'}.`)
  for (const [argument, text, choices] of row.arguments ?? []) {
    const added = new Argument(argument, text)
    command.addArgument(choices ? added.choices(choices) : added)
  }
  for (const [flags, text, fallback, { isMandatory = false, choices, conflicts } = {}] of row.options ?? []) {
    const option = new Option(flags, isMandatory ? `${text} (required)` : text)
      .default(fallback)
      .makeOptionMandatory(isMandatory)
    if (choices) option.choices(choices)
    if (conflicts) option.conflicts(conflicts)
    command.addOption(option)
  }
  // The command that `exec` runs keeps its own options, such as --version, also without `--` before it. The
  // options of the program must then stand before `exec`, so `exec` has its own --config.
  if (name === 'exec') {
    gatehouse.enablePositionalOptions()
    command.passThroughOptions()
  }
  // Commander passes the arguments, the options and the command, in this order.
  if (run)
    command.action((...given) =>
      run({ ...gatehouse.opts(), ...command.opts() }, ...given.slice(0, -2), gatehouse),
    )
}

/**
 * Adds a suggestion to the error of an unknown option or command. For an option such as `--port`, the
 * suggestion is the setting of the same name, because newcomers expect an option for each setting. For a
 * command such as `start`, the suggestion is `serve`.
 */
const withRemedy = (error: string): string => {
  const [, option = ''] = /unknown option '--([\w-]+)/.exec(error) ?? []
  const setting = option.replaceAll('-', '_')
  if (setting in settings) return `${error.trimEnd()}: set GATEHOUSE_${setting.toUpperCase()} instead\n`
  if (/unknown command '(?:start|run|server|up)'/.test(error))
    return `${error.split('\n')[0]}: did you mean serve?\n`
  return error
}

/**
 * @throws ConfigError when the subject is not a command
 */
const helpOf = (gatehouse: Command, subject: string[]): string => {
  if (subject.join() === 'settings') return settingsHelp({ command: gatehouse })
  const found = subject.reduce<Command | undefined>(
    (above, word) => above?.commands.find(command => command.name() === word),
    gatehouse,
  )
  if (!found)
    throw new ConfigError(
      `help: there is no command ${subject.join(' ')}. \`gatehouse help\` lists all commands.`,
    )
  if (found !== gatehouse) return found.helpInformation().trimEnd()
  return [
    found.helpInformation().trimEnd(),
    settingsHelp({ command: found }),
    otherHelp({ command: found }),
  ].join('\n\n')
}

/** Returns a function that lays out rows in the columns of commander's help. */
const listing = (command: Command) => {
  const help = command.createHelp()
  help.prepareContext({ helpWidth: process.stdout.columns || 80 })
  return (rows: [string, string][]): string => {
    const width = Math.max(...rows.map(([name]) => name.length))
    return rows.map(([name, about]) => help.formatItem(name, width, about, help)).join('\n')
  }
}

const settingsHelp = ({ command }: { command: Command }): string => {
  const list = listing(command)
  return `Settings:
${list(Object.entries(settings).map(([name, { about }]) => [name, about]))}

  Set them by these names in the file of --config, or as environment variables
  such as GATEHOUSE_DATA_DIR. A secret can also be in a file of its own, which a
  variable such as GATEHOUSE_MASTER_KEY_FILE names.`
}

const otherHelp = ({ command }: { command: Command }): string => {
  const list = listing(command)
  return `Exit codes:
${list(exitCodes)}

First steps:
${list([
  ['gatehouse serve', 'create keys and database, and print a link for the first admin'],
  ['gatehouse user link', 'print a new link for the first admin'],
  ['gatehouse guide', 'list the pages of the guide'],
])}`
}

/** Returns a call whose arguments commander parses when `run` is called. */
export const parsedCall = (args: string[]): CommandCall => {
  const gatehouse = program(args[0])
  return {
    options: () => gatehouse.opts(),
    run: async () => {
      try {
        await gatehouse.parseAsync(args, { from: 'user' })
        return undefined
      } catch (error) {
        if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
        throw error
      }
    },
  }
}

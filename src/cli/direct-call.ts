import { type CommandRow, commands } from './commands.ts'

type Options = Record<string, unknown>

/** A parsed call of a command. */
export interface CommandCall {
  options(): Options
  /**
   * Runs the command. Returns an exit code only when the parser has printed help or refused the call. A
   * command with an exit code of its own sets `process.exitCode`.
   */
  run(): Promise<number | undefined>
}

/**
 * Commands whose output describes all commands. They need commander, because they print its list of commands.
 */
export const ABOUT_ALL = ['completion', 'man']

/** Matches an option without a value, or with one required value, such as `-o, --output <form>`. */
const PLAIN = /^(?:-\w, )?(--[a-z][a-z-]*)( <[\w-]+>)?$/

/**
 * Parses a command line with a one-word command and plain options; for `exec`, a command may follow after
 * `--`. Returns undefined for any other command line and for one with mistakes, which commander then parses.
 * Loading commander takes 2 ms of CPU time, which is half of the CPU time of a bare start.
 */
export const directCall = ([name = '', ...args]: readonly string[]): CommandCall | undefined => {
  const row = commands.find(command => command.name === name)
  const end = args.indexOf('--')
  const [given, operands] = end < 0 ? [args, []] : [args.slice(0, end), args.slice(end + 1)]
  if (!row?.run || ABOUT_ALL.includes(name) || !takes(row, operands)) return undefined
  const options = optionsOf(row, given)
  if (!options) return undefined
  const { run } = row
  return {
    options: () => options,
    run: async () => {
      await run(options, ...(operands.length > 0 ? [operands] : []))
      return undefined
    },
  }
}

/**
 * True when the words fit the command. A command without arguments takes no words. A command whose only
 * argument is a list, such as `<command...>`, takes one word or more. All other commands need the parser.
 */
const takes = ({ arguments: all = [] }: CommandRow, operands: string[]): boolean =>
  operands.length === 0 ? all.length === 0 : all.length === 1 && /^<.*\.\.\.>$/.test(all[0]?.[0] ?? '')

/**
 * Returns the values of the options. Returns undefined when the command needs the parser or an option is
 * wrong.
 */
const optionsOf = ({ options: rows = [] }: CommandRow, args: string[]): Options | undefined => {
  const takesValue = new Map<string, boolean>()
  const values: Options = {}
  for (const [flags, , fallback, rule] of rows) {
    if (rule?.isMandatory || flags.startsWith('--no-')) return undefined
    const [, flag = '', value] = PLAIN.exec(flags) ?? []
    if (!rule && flag) takesValue.set(flag, value !== undefined)
    if (fallback !== undefined) values[keyOf(/--[a-z-]+/.exec(flags)?.[0] ?? '')] = fallback
  }
  for (let i = 0; i < args.length; i++) {
    const flag = args[i] ?? ''
    const needsValue = takesValue.get(flag)
    const value = needsValue ? args[++i] : true
    if (needsValue === undefined || value === undefined || String(value).startsWith('-')) return undefined
    values[keyOf(flag)] = value
  }
  return values
}

/** Returns the name under which commander passes an option, such as `dataDir`. */
const keyOf = (flag: string): string =>
  flag.slice(2).replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())

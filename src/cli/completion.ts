import type { Command, Option } from 'commander'
import { print } from './print.ts'

interface Node {
  /** The words of the command, such as `user create`. Empty for the program itself. */
  path: string
  command: Command
}

const tree = (command: Command, path = ''): Node[] => [
  { path, command },
  ...subcommands(command).flatMap(child => tree(child, `${path} ${child.name()}`.trim())),
]

const subcommands = (command: Command): readonly Command[] => command.createHelp().visibleCommands(command)
const optionsOf = (command: Command): readonly Option[] => command.createHelp().visibleOptions(command)
const valuesOf = (command: Command): readonly string[] =>
  command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? [])
const flagsOf = (command: Command): string[] =>
  optionsOf(command).flatMap(({ long, short }) =>
    [long, short].filter(flag => flag !== undefined && flag !== null),
  )

/**
 * Returns the script for bash. The script contains the words that may follow each command, and the fixed
 * values of options. Pressing Tab therefore starts no process.
 */
const bash = (nodes: Node[]): string => {
  const paths = nodes.slice(1).map(({ path }) => `' ${path}'`)
  const words = nodes.map(
    ({ path, command }) =>
      `    '${path}') words='${[...subcommands(command).map(child => child.name()), ...valuesOf(command), ...flagsOf(command)].join(' ')}' ;;`,
  )
  const values = nodes.flatMap(({ path, command }) =>
    optionsOf(command).flatMap(({ long, argChoices }) =>
      argChoices ? [`    '${path} ${long}') words='${argChoices.join(' ')}' ;;`] : [],
    ),
  )
  return `_gatehouse() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" path='' words='' word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case " \${path:+$path }$word" in
    ${paths.join('|')}) path="\${path:+$path }$word" ;;
    esac
  done
  case "$path" in
${words.join('\n')}
  esac
  case "$path $previous" in
${values.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
# Completes file names where no word fits.
complete -o default -F _gatehouse gatehouse`
}

const zsh = (nodes: Node[]): string => `autoload -U +X bashcompinit && bashcompinit\n${bash(nodes)}`

const fish = (nodes: Node[]): string =>
  nodes
    .flatMap(({ path, command }) => {
      const seen = path
        .split(' ')
        .filter(Boolean)
        .map(word => `__fish_seen_subcommand_from ${word}`)
      const names = subcommands(command).map(child => child.name())
      const within = seen.join('; and ') || 'true'
      const next = [...seen, `not __fish_seen_subcommand_from ${names.join(' ')}`].join('; and ')
      const choices = valuesOf(command).join(' ')
      return [
        ...(choices ? [`complete -c gatehouse -f -n '${within}' -a '${choices}'`] : []),
        ...subcommands(command).map(
          child =>
            `complete -c gatehouse -f -n '${next}' -a ${child.name()} -d ${quoted(child.description())}`,
        ),
        ...optionsOf(command).map(option => {
          const names = [
            option.long && `-l ${option.long.slice(2)}`,
            option.short && `-s ${option.short.slice(1)}`,
          ]
          const values = option.argChoices
            ? `-x -a '${option.argChoices.join(' ')}'`
            : option.required
              ? '-r'
              : ''
          const spelled = [...names, values].filter(Boolean).join(' ')
          return `complete -c gatehouse -n '${within}' ${spelled} -d ${quoted(option.description)}`
        }),
      ]
    })
    .join('\n')

const quoted = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`

/** Prints a script that completes commands, options, and the fixed values of arguments and options. */
export const completion = (shell: 'bash' | 'zsh' | 'fish', program: Command): void =>
  print({ bash, zsh, fish }[shell](tree(program)))

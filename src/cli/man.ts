import type { Command } from 'commander'
import { settings } from '#src/config.ts'
import { VERSION } from '#src/lib/version.ts'
import { exitCodes } from './exit-codes.ts'
import { print } from './print.ts'

/** Escapes text for roff: https://man7.org/linux/man-pages/man7/groff_char.7.html */
const roff = (text: string): string =>
  text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/^(?=[.'])/gm, '\\&')

const item = ([term, about]: readonly [string, string]): string =>
  `.TP\n\\fB${roff(term)}\\fR\n${roff(about) || '\\&'}`

const section = (title: string, ...parts: string[]): string => [`.SH ${title}`, ...parts].join('\n')

/**
 * Returns the section of a command, or the sections of all commands of a group. A section lists the arguments
 * and options of one command.
 */
const commandText = (command: Command): string[] => {
  const help = command.createHelp()
  const name = (each: Command): string => (each.parent ? `${name(each.parent)} ${each.name()}` : each.name())
  const children = help.visibleCommands(command).filter(child => child.name() !== 'help')
  const own = [
    `.SS ${roff(`${name(command)} ${command.usage()}`.trim())}`,
    roff(command.description()),
    ...help
      .visibleArguments(command)
      .map(argument => item([help.argumentTerm(argument), help.argumentDescription(argument)])),
    ...help
      .visibleOptions(command)
      .filter(({ long }) => long !== '--help')
      .map(option => item([help.optionTerm(option), help.optionDescription(option)])),
  ]
  return [...(children.length > 0 ? [] : [own.join('\n')]), ...children.flatMap(commandText)]
}

/** Prints the manual page gatehouse(1). */
export const man = (gatehouse: Command): void => {
  const help = gatehouse.createHelp()
  print(
    [
      `.TH GATEHOUSE 1 "" "Gatehouse ${VERSION}" "User Commands"`,
      section('NAME', `gatehouse \\- ${roff(gatehouse.description().replace(/\.$/, ''))}`),
      section('SYNOPSIS', '.B gatehouse', '[\\fIoptions\\fR] \\fIcommand\\fR [\\fIargument\\fR ...]'),
      section(
        'OPTIONS',
        ...help
          .visibleOptions(gatehouse)
          .map(option => item([help.optionTerm(option), help.optionDescription(option)])),
      ),
      section('COMMANDS', ...commandText(gatehouse)),
      section('SETTINGS', ...Object.entries(settings).map(([name, { about }]) => item([name, about]))),
      section('EXIT STATUS', ...exitCodes.map(item)),
    ].join('\n'),
  )
}

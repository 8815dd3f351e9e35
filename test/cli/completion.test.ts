/** Tests completion in the installed shells, and the manual page. */
import { expect, test } from 'bun:test'
import { commands } from '#src/cli/commands.ts'
import { program } from '#src/cli/program.ts'
import { settings } from '#src/config.ts'
import { testWith } from '#test/support/debian.ts'
import { gatehouse } from '#test/support/executable.ts'

const visible = commands.filter(({ hidden }) => !hidden)
const scriptFor = async (shell: string): Promise<string> => {
  const { code, stdout, stderr } = await gatehouse(['completion', shell])
  expect([code, stderr]).toEqual([0, ''])
  return stdout
}
const optionsOf = (name: string): string[] => {
  const command = name
    .split(' ')
    .reduce((above, word) => above.commands.find(each => each.name() === word) ?? above, program())
  return command.options.flatMap(({ long }) => long ?? [])
}

test('bash completes each command, its options and their values', async () => {
  const script = await scriptFor('bash')
  const lines = [
    ...visible.map(({ name }) => `${name} `),
    '',
    'ser',
    'user cr',
    'client create x --kind ',
    'completion ',
  ]
  const calls = lines.map(line => {
    const words = ['gatehouse', ...line.split(' ')].map(word => `'${word}'`)
    return `COMP_WORDS=(${words.join(' ')}); COMP_CWORD=${words.length - 1}; COMPREPLY=(); _gatehouse; echo "\${COMPREPLY[*]}"`
  })
  const answers = (await Bun.$`bash --norc -c ${[script, ...calls].join('\n')}`.text()).split('\n')
  const completed = (line: string) => answers[lines.indexOf(line)]?.split(' ')
  for (const { name, run } of visible)
    if (run) expect([name, completed(`${name} `)]).toEqual([name, expect.arrayContaining(optionsOf(name))])
  expect(completed('')).toEqual(expect.arrayContaining(['serve', 'user', 'help', '--config']))
  expect(completed('')).not.toContain('xml-worker')
  expect(completed('ser')).toEqual(['serve'])
  expect(completed('user ')).toEqual(expect.arrayContaining(['link', 'create', 'reset-mfa']))
  expect(completed('user cr')).toEqual(['create'])
  expect(completed('client create x --kind ')).toEqual(['web', 'spa', 'native', 'service'])
  expect(completed('completion ')).toEqual(expect.arrayContaining(['bash', 'zsh', 'fish']))
}, 30_000)

/**
 * Tests that a shell reads the completion script. `first` are the commands of the shell's start-up file that
 * completion needs.
 */
const reads = (shell: string, first = '') =>
  testWith(shell, `/usr/bin/${shell}`)(`${shell} reads its script without a complaint`, async () => {
    const script = await scriptFor(shell)
    const { exitCode, stderr } = await Bun.$`${shell} -c ${first + script}`.nothrow().quiet()
    expect([exitCode, stderr.toString()]).toEqual([0, ''])
  })
reads('zsh', 'autoload -Uz compinit; compinit -u -D; ')
reads('fish')

testWith('fish', '/usr/bin/fish')('fish completes the values of an argument and of an option', async () => {
  const script = await scriptFor('fish')
  for (const [line, values] of [
    ['gatehouse completion ', ['bash', 'fish', 'zsh']],
    ['gatehouse sbom --format ', ['cyclonedx', 'spdx']],
  ] as const) {
    const found = await Bun.$`fish -c ${`${script}\ncomplete -C '${line}'`}`.text()
    // A description may follow a value after a tab.
    const words = found
      .trim()
      .split('\n')
      .map(row => row.split('\t', 1)[0])
    expect(words.sort()).toEqual([...values])
  }
})

test('the scripts for zsh and fish contain each command and option', async () => {
  for (const shell of ['zsh', 'fish']) {
    const script = await scriptFor(shell)
    for (const { name } of visible)
      for (const word of [...name.split(' '), ...optionsOf(name).map(long => long.slice(2))])
        expect([shell, name, script.includes(word)]).toEqual([shell, name, true])
  }
})

test('the manual page has each command, option, setting and exit code', async () => {
  const { code, stdout } = await gatehouse(['man'])
  expect(code).toBe(0)
  const text = stdout.replaceAll('\\-', '-').replaceAll('\\&', '')
  for (const { name, run, about } of visible)
    if (run) {
      expect(text).toContain(`.SS gatehouse ${name}`)
      expect(text).toContain(about)
      for (const option of optionsOf(name)) expect([option, text.includes(option)]).toEqual([option, true])
    }
  for (const name of Object.keys(settings)) expect(text).toContain(`\\fB${name}\\fR`)
  expect(text).not.toContain('xml-worker')
  expect(text).toContain('.SH EXIT STATUS\n.TP\n\\fB0\\fR\ndone')
})

testWith('groff', '/usr/bin/groff')('groff formats the manual page without a warning', async () => {
  const { stdout } = await gatehouse(['man'])
  const formatted = await Bun.$`groff -k -man -Tutf8 -ww -P-cbou < ${Buffer.from(stdout)}`.nothrow().quiet()
  expect([formatted.exitCode, formatted.stderr.toString()]).toEqual([0, ''])
  expect(formatted.stdout.toString()).toContain('gatehouse client create')
})

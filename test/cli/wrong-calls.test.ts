/** Tests wrong calls of each command in an empty directory, and the output at a terminal. */
import { afterAll, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Argument } from 'commander'
import { commands } from '#src/cli/commands.ts'
import { EXECUTABLE, gatehouse, serveExecutable } from '#test/support/executable.ts'

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-'))
afterAll(() => rmSync(folder, { recursive: true }))
/** A file with broken YAML. */
const junk = join(folder, 'junk')
writeFileSync(junk, 'junk: [')
const wrongSeed = join(folder, 'wrong.yaml')
writeFileSync(wrongSeed, 'users: [{ username: x }]')
/** The role of this seed does not exist. Only a comparison with an instance can find this mistake. */
const ghostSeed = join(folder, 'ghost.yaml')
writeFileSync(ghostSeed, 'users: [{ username: ada, email: ada@example.com, roles: [ghost] }]')

interface Env {
  [name: string]: string
}

/** Runs a command in a new directory. Returns the files that are in the directory afterwards. */
const inEmptyDirectory = async (args: string[], env: Env = {}) => {
  const cwd = mkdtempSync(join(folder, 'empty-'))
  const child = Bun.spawn([EXECUTABLE, ...args], {
    cwd,
    env: { PATH: process.env.PATH ?? '', TMPDIR: folder, ...env },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const stderr = await new Response(child.stderr).text()
  return { code: await child.exited, stderr, left: readdirSync(cwd, { recursive: true }) }
}

const web = ['client', 'create', 'app', '--kind', 'web', '--redirect']
/** The setting in this file has a name that would clear the screen of a terminal. */
const hostile = join(folder, 'hostile.yaml')
writeFileSync(hostile, '"a\\e[2Jb\\u009b": 1')
/** Calls with a wrong argument or setting, and the message of each refusal. */
const refused: [args: string[], text: RegExp, env?: Env][] = [
  [['serve'], /missing\.yaml: cannot be read/, { GATEHOUSE_SEED_FILE: 'missing.yaml' }],
  [['config', 'check', '--config', hostile], /a\\u001b\[2Jb\\u009b: no such setting/],
  [['serve'], /wrong\.yaml has/, { GATEHOUSE_SEED_FILE: wrongSeed }],
  [
    ['serve'],
    /tls_cert: missing cannot be read/,
    { GATEHOUSE_TLS_CERT: 'missing', GATEHOUSE_TLS_KEY: 'missing' },
  ],
  [['serve'], /GATEHOUSE_HOST: 300\.1\.1\.1/, { GATEHOUSE_HOST: '300.1.1.1' }],
  [['serve'], /GATEHOUSE_COLOUR: no such setting/, { GATEHOUSE_COLOUR: 'red' }],
  [['serve'], /admin_client_id: /, { GATEHOUSE_ADMIN_CLIENT_ID: 'x' }],
  [
    ['serve'],
    /admin_username: /,
    { GATEHOUSE_ADMIN_USERNAME: 'a', GATEHOUSE_ADMIN_EMAIL: 'a@example.com', GATEHOUSE_ADMIN_PASSWORD: 'x' },
  ],
  [['--config', 'missing.yaml', 'serve'], /missing\.yaml: cannot be read/],
  [['user', 'link'], /no instance here/],
  [['user', 'list'], /no instance here/],
  [['user', 'create', 'ada', '--email', 'ada@example.com'], /no instance here/],
  [['user', 'password', 'ada'], /no instance here/],
  [['user', 'unlock', 'ada'], /no instance here/],
  [['user', 'reset-mfa', 'ada'], /no instance here/],
  [['client', 'create', 'app', '--kind', 'service'], /no instance here/],
  [['client', 'list'], /no instance here/],
  [['client', 'secret', 'app'], /no instance here/],
  [['client', 'delete', 'app'], /no instance here/],
  [['client', 'create', 'app', '--kind', 'web'], /--redirect: missing/],
  [[...web, 'app.example.com/cb'], /the scheme is missing: https:\/\/app\.example\.com\/cb$/m],
  [[...web, 'localhost:3000/cb'], /the scheme is missing: http:\/\/localhost:3000\/cb$/m],
  // One mistake causes one error. The post-logout URI is derived from the wrong URI, but causes no second
  // error.
  [[...web, 'http://app.example.com/cb'], /^gatehouse: --redirect: A redirect URI must use https[^:]*\.\n$/],
  [
    [...web, 'x:/y', '--colour', 'red'],
    /unknown option '--colour'\n.*`gatehouse client create --help` lists/,
  ],
  [['client', 'make'], /unknown command 'make'\n.*`gatehouse client --help` lists its commands/],
  [['serve', '--port', '80'], /unknown option '--port': set GATEHOUSE_PORT instead\n/],
  [['start'], /unknown command 'start': did you mean serve\?\n/],
  [['healthcheck', '--url', 'http://127.0.0.1:1'], /no answer/],
  [['healthcheck', '--url', 'localhost'], /--url: must be a URL such as/],
  [['dev', '--seed', 'missing.yaml'], /missing\.yaml: cannot be read/],
  [['dev', '--data-dir', 'd', '--port', 'x'], /--port: /],
  [['dev', '--data-dir', 'd', '--port', '0', '--url', 'x'], /--url: not an http or https address/],
  [['dev', '--data-dir', 'd', '--port', '0', '--internal-url', 'x'], /--internal-url: not an http/],
  [['dev', '--data-dir', 'd', '--port', '0', '--key', junk], /--key: /],
  [['dev', '--data-dir', 'd', '--port', '0', '--host', '300.1.1.1'], /cannot listen on 300/],
  [
    ['dev', '--data-dir', 'd', '--port', '0', '--ready-file', 'no/file'],
    /--ready-file: no\/file cannot be written/,
  ],
  [['exec', '--data-dir', 'd', '--client', 'nobody', '--', 'true'], /--client: there is no client nobody/],
  [['exec', '--data-dir', 'd', '--', 'no-such-program'], /no-such-program: there is no such command/],
  [['token', '--user', 'ada'], /is running on a temporary directory\. .* with --data-dir/],
  [['token', '--output', 'xml'], /--output: /],
  [['token', '--data-dir', 'd', '--user', 'ada'], /no instance here/],
  [['plan', 'missing.yaml'], /missing\.yaml: cannot be read/],
  [['plan', wrongSeed], /wrong\.yaml has/],
  [['apply', 'missing.yaml'], /missing\.yaml: cannot be read/],
  [['apply', wrongSeed], /wrong\.yaml has/],
  [['apply', junk], /junk has/],
  [['apply', ghostSeed], /no role ghost/],
  [['serve'], /no role ghost/, { GATEHOUSE_PORT: '0', GATEHOUSE_SEED_FILE: ghostSeed }],
  [['apply', ghostSeed, '--prune'], /no role ghost/, { GATEHOUSE_ADMIN_CLIENT_SECRET: 'x'.repeat(32) }],
  [['apply', wrongSeed.replace('wrong', 'none'), '--prune'], /cannot be read/],
  [['export', 'file.yaml'], /no instance here/],
  [['openapi', '--seed'], /unknown option/],
  [['config', 'check'], /GATEHOUSE_PORT: /, { GATEHOUSE_PORT: 'x' }],
  [['config', 'check'], /admin_client_id: /, { GATEHOUSE_ADMIN_CLIENT_ID: 'x' }],
  [['config', 'check'], /missing\.yaml: cannot be read/, { GATEHOUSE_SEED_FILE: 'missing.yaml' }],
  [['config', 'check'], /wrong\.yaml has/, { GATEHOUSE_SEED_FILE: wrongSeed }],
  [['config', 'print'], /GATEHOUSE_PORT: /, { GATEHOUSE_PORT: 'x' }],
  [['backup', 'copy.db'], /no instance here/],
  [['restore', 'missing'], /missing: no such file/],
  [['restore', junk], /not an SQLite database/],
  [['migrate-to', 'nowhere'], /migrate-to takes sqlite/],
  [['migrate-to', 'sqlite'], /in SQLite already/],
  [['migrate-to', 'postgres://me@127.0.0.1:1/none'], /no instance here/],
  [['check'], /no instance here/],
  [['events', 'export'], /no instance here/],
  [
    ['webhooks', 'listen', '--forward', 'http://localhost:1/'],
    /is running on a temporary directory\. .* with --data-dir/,
  ],
  [['webhooks', 'listen', '--forward', 'x'], /--forward: /],
  [
    ['webhooks', 'listen', '--forward', 'http://localhost:1/', '--events', 'user.*', 'user.login.failed'],
    /--events: user\.login\.failed: No event type matches .*`gatehouse guide events`/,
  ],
  [['events', 'export', '--since', 'x'], /--since: /],
  [['doctor'], /checks? failed/],
  [['keys', 'list'], /no instance here/],
  [['keys', 'rotate'], /no instance here/],
  [['keys', 'revoke', 'x'], /no instance here/],
  [['keys', 'import', 'missing'], /no instance here/],
  [['keys', 'export', 'x'], /no instance here/],
  [['keys', 'rekey', '--new-key-file', 'new.key'], /no instance here/],
  [['licenses', 'all'], /too many arguments/],
  [['sbom', '--format', 'xml'], /Allowed choices are cyclonedx, spdx/],
  [['guide', 'xyzzy'], /no page has this name/],
  [['completion', 'tcsh'], /Allowed choices are bash, zsh, fish/],
  [['man', 'serve'], /too many arguments/],
  [['version', 'now'], /too many arguments/],
  [['help', 'nothing'], /no command nothing/],
]

test('RUN-14, RUN-30, RUN-34 a wrong call of any command leaves an empty directory empty', async () => {
  const run = commands.filter(row => row.run && !row.hidden)
  const words = (name: string) => name.split(' ')
  for (const { name } of run)
    expect([name, refused.some(([args]) => args.join(' ').includes(name))]).toEqual([name, true])
  const calls: typeof refused = [
    ...refused,
    ...run.map(({ name }): (typeof refused)[number] => [
      [...words(name), '--no-such-flag'],
      /--no-such-flag|required option/,
    ]),
    ...run
      .filter(row =>
        row.arguments?.some(each => (each instanceof Argument ? each.required : each[0].startsWith('<'))),
      )
      .map(({ name }): (typeof refused)[number] => [
        words(name),
        /missing required argument|required option/,
      ]),
  ]
  for (const [args, text, env] of calls) {
    const { code, stderr, left } = await inEmptyDirectory(args, env)
    expect([args, env, left]).toEqual([args, env, []])
    expect([args, stderr]).toEqual([args, expect.stringMatching(text)])
    expect([args, [1, 2, 75, 78].includes(code)]).toEqual([args, true])
  }
}, 120_000)

test.each([
  ['directory', 0o000, 0o600],
  ['file', 0o755, 0o000],
])('RUN-30 a command of a user who may not read the %s says so', async (name, directory, file) => {
  const data_dir = join(folder, `closed-${name}`)
  mkdirSync(data_dir)
  writeFileSync(join(data_dir, 'gatehouse.db'), '', { mode: file })
  chmodSync(folder, 0o755)
  chmodSync(data_dir, directory)
  const isRoot = process.getuid?.() === 0
  const other = isRoot ? ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'] : []
  const env = { PATH: process.env.PATH ?? '', GATEHOUSE_DATA_DIR: data_dir }
  const child = Bun.spawnSync([...other, EXECUTABLE, 'user', 'list'], { cwd: folder, env })
  chmodSync(data_dir, 0o700)
  expect(child.stderr.toString()).toBe(
    `gatehouse: ${join(data_dir, 'gatehouse.db')}: this user may not read it. Run the command as the user that runs the server.\n`,
  )
  expect([child.exitCode, readdirSync(data_dir)]).toEqual([78, ['gatehouse.db']])
})

test('help has a page for the settings and for each command, and no others', async () => {
  const settings = await gatehouse(['help', 'settings'])
  expect(settings.code).toBe(0)
  expect(settings.stdout).toStartWith('Settings:\n')
  expect(settings.stdout).toContain('otel_exporter_otlp_endpoint')
  for (const word of ['Usage:', 'Commands:', 'Exit codes:']) expect(settings.stdout).not.toContain(word)
  expect((await gatehouse(['help', 'client', 'create'])).stdout).toStartWith('Usage: gatehouse client create')
  const { stdout } = await gatehouse(['help'])
  expect(stdout).toBe((await gatehouse(['--help'])).stdout)
  for (const word of ['Commands:', 'Settings:', 'Exit codes:']) expect(stdout).toContain(word)
})

const atTerminal = async (args: string[], env: Env, until?: RegExp): Promise<string> => {
  let shown = ''
  const decoder = new TextDecoder()
  const enough = Promise.withResolvers<void>()
  const child = Bun.spawn([EXECUTABLE, ...args], {
    env: { PATH: process.env.PATH ?? '', TERM: 'dumb', ...env },
    terminal: {
      cols: 200,
      rows: 50,
      data: (_terminal, bytes) => {
        shown += decoder.decode(bytes, { stream: true })
        if (until?.test(shown)) enough.resolve()
      },
    },
  })
  if (until) {
    await enough.promise
    child.kill('SIGTERM')
  }
  await child.exited
  return shown.replaceAll('\r\n', '\n')
}

test('on a terminal a link follows a sentence with its expiry; a pipe gets only the link', async () => {
  const data_dir = join(folder, 'links')
  mkdirSync(data_dir)
  await using server = await serveExecutable({}, data_dir)
  const env = { GATEHOUSE_DATA_DIR: data_dir, GATEHOUSE_URL: server.url }
  const sentence = (whom: string, path: string) =>
    new RegExp(
      `^Open this link to sign in as ${whom}\\. It works once, until \\d\\d:\\d\\d UTC \\(30 minutes\\):\n\n {2}${server.url}/account/${path}\\?token=[\\w-]{43}\n\n$`,
    )
  expect(await atTerminal(['user', 'link'], env)).toMatch(sentence('the first administrator', 'set-up'))
  expect(await atTerminal(['user', 'create', 'ada', '--email', 'ada@example.com'], env)).toMatch(
    sentence('ada', 'sign-in'),
  )
  expect(await atTerminal(['user', 'link', 'ada'], env)).toMatch(sentence('ada', 'sign-in'))
  expect((await gatehouse(['user', 'link', 'ada'], env)).stdout).toMatch(/^http\S+\n$/)
}, 30_000)

test('on a terminal config print shows no secret', async () => {
  const env = { GATEHOUSE_METRICS_TOKEN: 'scrape-me' }
  const line = /^metrics_token +(\S+) +environment$/m
  expect(line.exec(await atTerminal(['config', 'print'], env))?.[1]).toBe('••••')
  expect(line.exec((await gatehouse(['config', 'print'], env)).stdout)?.[1]).toBe('scrape-me')
})

test('on a terminal serve shows its banner before the log', async () => {
  const env = { GATEHOUSE_DATA_DIR: join(folder, 'banner'), GATEHOUSE_PORT: '0' }
  const shown = await atTerminal(['serve'], env, /no mail is sent/)
  expect(shown.slice(0, shown.indexOf('Gatehouse'))).not.toContain('INFO')
  expect(shown.indexOf('First admin')).toBeLessThan(shown.indexOf('no mail is sent'))
  expect(shown.indexOf('First admin')).toBeGreaterThan(0)
}, 30_000)

test('in the data directory of a server on PostgreSQL, each command asks for the database_url', async () => {
  const data_dir = mkdtempSync(join(folder, 'postgres-'))
  const server = 'http://127.0.0.1:1'
  const started = { url: server, local_url: server, settings: ['database_url'] }
  writeFileSync(join(data_dir, 'server.json'), JSON.stringify(started))
  const run = (...args: string[]) => gatehouse(args, { GATEHOUSE_DATA_DIR: data_dir })
  const stderr = expect.stringContaining('Give this command its database_url, or remove server.json to use')
  for (const [command = '', ...args] of [
    ['apply', ghostSeed],
    ['plan', ghostSeed],
    ['export'],
    ['check'],
    ['backup', join(data_dir, 'backup.db')],
    ['keys', 'list'],
    ['user', 'list'],
    ['migrate-to', 'postgres://u@127.0.0.1:1/db'],
  ])
    expect([command, await run(command, ...args)]).toEqual([command, { code: 2, stdout: '', stderr }])
  const { code, stdout } = await run('doctor')
  expect(code).toBe(1)
  expect(stdout).toMatch(/^fail {2}database .*: the last server here used PostgreSQL\./m)
  for (const name of ['themes', 'webhooks'])
    expect(stdout).toMatch(new RegExp(`^skip +${name} +give this command the server's database_url`, 'm'))
  expect(stdout).not.toContain('create an instance')
  expect(readdirSync(data_dir)).toEqual(['server.json'])
}, 30_000)

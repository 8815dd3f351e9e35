import { Command, CommanderError } from 'commander'
import { settings } from '#src/config.ts'
import { VERSION } from '#src/lib/version.ts'

/** Commands load their code when they are called: `serve` must not wait for what only others need. */
export const program = (): Command => {
  const gatehouse = new Command('gatehouse')
    .description('A multi-tenant identity server in one executable.')
    .version(VERSION, '-V, --version')
    .option('--config <file>', 'settings file (YAML or JSON); the environment beats it')
    .exitOverride()
    .showSuggestionAfterError()

  gatehouse
    .command('serve')
    .description('run the server')
    .action(async () => (await import('./serve.ts')).serve(gatehouse.opts()))
  const user = gatehouse.command('user').description('help people in: works beside a running server')
  user
    .command('link')
    .argument('[user]', 'user name, e-mail address or id; without it a set-up link for the first admin')
    .option('--organization <slug>', 'where the user belongs', 'default')
    .description('print a single-use sign-in link (30 minutes)')
    .action(async (name, options) =>
      (await import('./user-link.ts')).userLink(name, { ...gatehouse.opts(), ...options }),
    )
  const onUser = (name: string, about: string) =>
    user
      .command(name)
      .argument('<user>', 'user name, e-mail address or id')
      .option('--organization <slug>', 'where the user belongs', 'default')
      .description(about)
  user
    .command('create')
    .argument('<username>')
    .requiredOption('--email <address>')
    .option('--first-name <name>', '', '')
    .option('--last-name <name>', '', '')
    .option('--role <role...>', 'default: user')
    .option('--organization <slug>', 'where the user belongs', 'default')
    .option('--password', 'read one from standard input; without it a sign-in link is printed')
    .description('create a user')
    .action(async (name, options) =>
      (await import('./user-create.ts')).userCreate(name, { ...gatehouse.opts(), ...options }),
    )
  onUser('password', 'set a password, read from standard input; ends all that the user has open')
    .option('--temporary', 'has to be changed at the next login')
    .action(async (name, options) =>
      (await import('./user-password.ts')).userPassword(name, { ...gatehouse.opts(), ...options }),
    )
  onUser('unlock', 'forget failed attempts, so that the user need not wait').action(async (name, options) =>
    (await import('./user-unlock.ts')).userUnlock(name, { ...gatehouse.opts(), ...options }),
  )
  onUser('reset-mfa', 'remove all second factors and recovery codes of a user').action(
    async (name, options) =>
      (await import('./user-reset-mfa.ts')).userResetMfa(name, { ...gatehouse.opts(), ...options }),
  )
  gatehouse
    .command('healthcheck')
    .option('--url <url>', 'server to ask; default from the settings')
    .description('exit 0 when the server is ready, 1 when not')
    .action(async options =>
      (await import('./healthcheck.ts')).healthcheck({ ...gatehouse.opts(), ...options }),
    )
  const development = (command: Command) =>
    command
      .option(
        '--seed <file>',
        'what to start with and to reset to; default: users alice and admin, two clients',
      )
      .option('--url <url>', 'issuer; default http://localhost:<port>')
      .option(
        '--internal-url <url>',
        'where other servers reach it, when that is not the issuer (containers)',
      )
      .option('--public-issuer', 'accept an issuer that is not this machine')
      .option('--host <address>', 'address to listen on; default 127.0.0.1')
      .option(
        '--dev-host <host...>',
        'answer to this host name too (421 for hosts that are not its own, loopback or named here); an address: listen on it and open the controls to other machines (containers)',
      )
      .option('--tls', 'https with a certificate of its own')
      .option('--auto-login', 'a login_hint logs in at once')
      .option('--key <file>', 'private JWK to sign with')
      .option('--data-dir <dir>', 'keep the data here; default: a throw-away directory')
  development(
    gatehouse.command('dev').description('run a throw-away server with users, clients and test controls'),
  )
    .option('--port <port>', '0 takes any free one', '8080')
    .option('--ready-file <file>', 'write the ready line here once everything answers')
    .action(async options => (await import('./dev.ts')).dev({ ...gatehouse.opts(), ...options }))
  development(gatehouse.command('exec').description('run a command beside a server of its own'))
    .argument(
      '<command...>',
      'after --; it finds SERVICE_URL, SERVICE_CLIENT_ID, SERVICE_CLIENT_SECRET, SERVICE_REALM',
    )
    .option('--port <port>', 'default: any free one')
    .option('--client <client_id>', 'the client of SERVICE_CLIENT_ID; default: the first confidential one')
    .action(async (command, options) => {
      process.exitCode = await (await import('./exec.ts')).exec(command, { ...gatehouse.opts(), ...options })
    })
  gatehouse
    .command('token')
    .option(
      '--user <user>',
      "user name, e-mail address or id; without one the client's own token (development)",
    )
    .option('--organization <slug>', 'where the user belongs', 'default')
    .option('--client <client_id>', 'the client that the token is for')
    .option('--scope <scopes>', "separated by blanks; default: the client's")
    .option('--role <role...>', "in the place of the user's (development)")
    .option('--claim <name=value...>', 'any claim (development)')
    .option('--bad <name>', 'a token that has to be refused, such as expired (development)')
    .option('--expires-in <duration>', 'such as 15m')
    .option(
      '--data-dir <dir>',
      'of the instance; default: the development server that runs, else the settings',
    )
    .option('-o, --output <form>', 'token, json or header', 'token')
    .description('print an access token')
    .action(async options => (await import('./token.ts')).token({ ...gatehouse.opts(), ...options }))
  gatehouse
    .command('plan')
    .argument('<file>', 'YAML or JSON; - is standard input')
    .option('--prune', 'delete what the file has not, in the sections that it has')
    .description('show what apply would change')
    .action(async (file, options) =>
      (await import('./plan.ts')).plan(file, { ...gatehouse.opts(), ...options }),
    )
  gatehouse
    .command('apply')
    .argument('<file>', 'YAML or JSON; - is standard input')
    .option('--prune', 'delete what the file has not, in the sections that it has')
    .description('make organizations, users, clients … what the file says')
    .action(async (file, options) =>
      (await import('./apply.ts')).apply(file, { ...gatehouse.opts(), ...options }),
    )
  gatehouse
    .command('export')
    .argument('[file]', 'default: standard output')
    .option('--secrets', 'with hashes of passwords and secrets, and secrets at providers')
    .description('write the file that apply takes')
    .action(async (file, options) =>
      (await import('./export.ts')).exportInstance(file, { ...gatehouse.opts(), ...options }),
    )
  gatehouse
    .command('openapi')
    .option('--seed-schema', 'the JSON Schema of the files of plan and apply instead')
    .description("print the admin API's OpenAPI 3.1 document")
    .action(async options => (await import('./openapi.ts')).openapi({ ...gatehouse.opts(), ...options }))
  const config = gatehouse.command('config').description('look at the settings')
  config
    .command('check')
    .description('read the settings as serve would, and the files that they name')
    .action(async () => (await import('./config-check.ts')).configCheck(gatehouse.opts()))
  config
    .command('print')
    .option('--redacted', 'hide secrets (they are hidden on a terminal anyway)')
    .description('print each setting with its value and where it came from')
    .action(async options =>
      (await import('./config-print.ts')).configPrint({ ...gatehouse.opts(), ...options }),
    )
  gatehouse
    .command('backup')
    .argument('<file>', 'must not exist yet')
    .description('copy the database into a file and verify the copy, while the server runs')
    .action(async file => (await import('./backup.ts')).backup(file, gatehouse.opts()))
  gatehouse
    .command('restore')
    .argument('<file>', 'made by backup, of this version or an older one')
    .option('--force', 'replace the database that is there')
    .description('put a backup in the place of the database; the server must be stopped')
    .action(async (file, options) =>
      (await import('./restore.ts')).restore(file, { ...gatehouse.opts(), ...options }),
    )
  gatehouse
    .command('migrate-to')
    .argument('<to>', 'postgres://user:password@host/database, or sqlite for the way back')
    .description('copy everything to the other engine and verify it there; the server must be stopped')
    .action(async to => (await import('./migrate-to.ts')).migrateTo(to, gatehouse.opts()))
  gatehouse
    .command('check')
    .description('read the whole database and open every key; exit 1 when anything is damaged')
    .action(async () => (await import('./check.ts')).check(gatehouse.opts()))
  gatehouse
    .command('events')
    .description('the audit log')
    .command('export')
    .option('--since <time>', 'such as 2026-01-31T08:00:00Z; default all')
    .description('print the audit events as JSON Lines, oldest first')
    .action(async options =>
      (await import('./events-export.ts')).eventsExport({ ...gatehouse.opts(), ...options }),
    )
  gatehouse
    .command('doctor')
    .description('look at settings, files, database, clock, address and mail; exit 1 when something is wrong')
    .action(async () => (await import('./doctor.ts')).doctor(gatehouse.opts()))
  const keys = gatehouse
    .command('keys')
    .description('signing keys and master key: works beside a running server')
  keys
    .command('list')
    .description('print the signing keys and what each is doing')
    .action(async () => (await import('./keys.ts')).keysList(gatehouse.opts()))
  keys
    .command('rotate')
    .description('publish a next key of each algorithm; it signs a quarter of an hour later')
    .action(async () => (await import('./keys.ts')).keysRotate(gatehouse.opts()))
  keys
    .command('revoke')
    .argument('<id>')
    .description('withdraw a compromised key at once, and replace it')
    .action(async id => (await import('./keys.ts')).keysRevoke(id, gatehouse.opts()))
  keys
    .command('import')
    .argument('<file>', 'private key in PEM')
    .option('--alg <alg>', 'RS256, RS384 or RS512 for an RSA key')
    .description('take up a key as the next one of its algorithm')
    .action(async (file, options) =>
      (await import('./keys.ts')).keysImport(file, { ...gatehouse.opts(), ...options }),
    )
  keys
    .command('export')
    .argument('<id>')
    .description('print a private key (PEM)')
    .action(async id => (await import('./keys.ts')).keysExport(id, gatehouse.opts()))
  keys
    .command('rekey')
    .option(
      '--new-key-file <file>',
      'the new master key, made when there is none; default in the data directory',
    )
    .description('change the master key; running servers go on')
    .action(async options => (await import('./keys.ts')).keysRekey({ ...gatehouse.opts(), ...options }))
  gatehouse.command('xml-worker', { hidden: true }).action(async () => {
    await import('#src/directory/identity-providers/xml-worker.ts')
    // It ends with the connection to the server that started it.
    await new Promise(() => {})
  })
  gatehouse
    .command('guide')
    .argument('[subject]', 'without it the list of subjects')
    .description('read the guide')
    .action(async subject => (await import('./guide.ts')).guide(subject))
  gatehouse
    .command('version')
    .description('print the version')
    .action(() => console.log(VERSION))
  gatehouse.addHelpText('after', settingsHelp)
  return gatehouse
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

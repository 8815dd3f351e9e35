import { type Command, Option } from 'commander'
import { VERSION } from '#src/lib/version.ts'

/** What commander hands to an action: it has no types for it, each command states its own. */
type Parsed = Parameters<Parameters<Command['action']>[0]>

export interface CommandRow {
  /** The command, after the groups that it is in. */
  name: string
  about: string
  hidden?: boolean
  /** In the order of the line, as `<needed>`, `[optional]` or `<several...>`. */
  arguments?: readonly (readonly [name: string, about?: string])[]
  options?: readonly (readonly [flags: string, about?: string, fallback?: string] | Option)[]
  /** `options` are the command's and the program's, `given` the arguments. A group has none. */
  run?(options: Parsed[number], ...given: Parsed): void | Promise<void>
}

const organization = ['--organization <slug>', 'where the user belongs', 'default'] as const
const onUser = {
  arguments: [['<user>', 'user name, e-mail address or id']],
  options: [organization],
} as const
const seedFile = ['<file>', 'YAML or JSON; - is standard input'] as const
const prune = ['--prune', 'delete what the file has not, in the sections that it has'] as const
const development = [
  ['--seed <file>', 'what to start with and to reset to; default: users alice and admin, two clients'],
  ['--url <url>', 'issuer; default http://localhost:<port>'],
  ['--internal-url <url>', 'where other servers reach it, when that is not the issuer (containers)'],
  ['--public-issuer', 'accept an issuer that is not this machine'],
  ['--host <address>', 'address to listen on; default 127.0.0.1'],
  [
    '--dev-host <host...>',
    'answer to this host name too (421 for hosts that are not its own, loopback or named here); an address: listen on it and open the controls to other machines (containers)',
  ],
  ['--tls', 'https with a certificate of its own'],
  ['--auto-login', 'a login_hint logs in at once'],
  ['--key <file>', 'private JWK to sign with'],
  ['--data-dir <dir>', 'keep the data here; default: a throw-away directory'],
] as const

/** All commands, in the order of the help. Each loads its code when it runs: `serve` must not wait for the others' code. */
export const commands: readonly CommandRow[] = [
  {
    name: 'serve',
    about: 'run the server',
    run: async options => (await import('./serve.ts')).serve(options),
  },
  { name: 'user', about: 'help people in: works beside a running server' },
  {
    name: 'user link',
    about: 'print a single-use sign-in link (30 minutes)',
    arguments: [['[user]', 'user name, e-mail address or id; without it a set-up link for the first admin']],
    options: [organization],
    run: async (options, name) => (await import('./user-link.ts')).userLink(name, options),
  },
  {
    name: 'user create',
    about: 'create a user',
    arguments: [['<username>']],
    options: [
      new Option('--email <address>').makeOptionMandatory(),
      ['--first-name <name>', '', ''],
      ['--last-name <name>', '', ''],
      ['--role <role...>', 'default: user'],
      organization,
      ['--password', 'read one from standard input; without it a sign-in link is printed'],
    ],
    run: async (options, name) => (await import('./user-create.ts')).userCreate(name, options),
  },
  {
    ...onUser,
    name: 'user password',
    about: 'set a password, read from standard input; ends all that the user has open',
    options: [organization, ['--temporary', 'has to be changed at the next login']],
    run: async (options, name) => (await import('./user-password.ts')).userPassword(name, options),
  },
  {
    ...onUser,
    name: 'user unlock',
    about: 'forget failed attempts, so that the user need not wait',
    run: async (options, name) => (await import('./user-unlock.ts')).userUnlock(name, options),
  },
  {
    ...onUser,
    name: 'user reset-mfa',
    about: 'remove all second factors and recovery codes of a user',
    run: async (options, name) => (await import('./user-reset-mfa.ts')).userResetMfa(name, options),
  },
  {
    name: 'healthcheck',
    about: 'exit 0 when the server is ready, 1 when not',
    options: [['--url <url>', 'server to ask; default from the settings']],
    run: async options => (await import('./healthcheck.ts')).healthcheck(options),
  },
  {
    name: 'dev',
    about: 'run a throw-away server with users, clients and test controls',
    options: [
      ...development,
      ['--port <port>', '0 takes any free one', '8080'],
      ['--ready-file <file>', 'write the ready line here once everything answers'],
    ],
    run: async options => (await import('./dev.ts')).dev(options),
  },
  {
    name: 'exec',
    about: 'run a command beside a server of its own',
    arguments: [
      [
        '<command...>',
        'after --; it finds SERVICE_URL, SERVICE_CLIENT_ID, SERVICE_CLIENT_SECRET, SERVICE_REALM',
      ],
    ],
    options: [
      ...development,
      ['--port <port>', 'default: any free one'],
      ['--client <client_id>', 'the client of SERVICE_CLIENT_ID; default: the first confidential one'],
    ],
    run: async (options, command) => {
      process.exitCode = await (await import('./exec.ts')).exec(command, options)
    },
  },
  {
    name: 'token',
    about: 'print an access token',
    options: [
      ['--user <user>', "user name, e-mail address or id; without one the client's own token (development)"],
      organization,
      ['--client <client_id>', 'the client that the token is for'],
      ['--scope <scopes>', "separated by blanks; default: the client's"],
      ['--role <role...>', "in the place of the user's (development)"],
      ['--claim <name=value...>', 'any claim (development)'],
      ['--bad <name>', 'a token that has to be refused, such as expired (development)'],
      ['--expires-in <duration>', 'such as 15m'],
      ['--data-dir <dir>', 'of the instance; default: the development server that runs, else the settings'],
      ['-o, --output <form>', 'token, json or header', 'token'],
    ],
    run: async options => (await import('./token.ts')).token(options),
  },
  {
    name: 'plan',
    about: 'show what apply would change',
    arguments: [seedFile],
    options: [prune],
    run: async (options, file) => (await import('./plan.ts')).plan(file, options),
  },
  {
    name: 'apply',
    about: 'make organizations, users, clients … what the file says',
    arguments: [seedFile],
    options: [prune],
    run: async (options, file) => (await import('./apply.ts')).apply(file, options),
  },
  {
    name: 'export',
    about: 'write the file that apply takes',
    arguments: [['[file]', 'default: standard output']],
    options: [['--secrets', 'with hashes of passwords and secrets, and secrets at providers']],
    run: async (options, file) => (await import('./export.ts')).exportInstance(file, options),
  },
  {
    name: 'openapi',
    about: "print the admin API's OpenAPI 3.1 document",
    options: [['--seed-schema', 'the JSON Schema of the files of plan and apply instead']],
    run: async options => (await import('./openapi.ts')).openapi(options),
  },
  { name: 'config', about: 'look at the settings' },
  {
    name: 'config check',
    about: 'read the settings as serve would, and the files that they name',
    run: async options => (await import('./config-check.ts')).configCheck(options),
  },
  {
    name: 'config print',
    about: 'print each setting with its value and where it came from',
    options: [['--redacted', 'hide secrets (they are hidden on a terminal anyway)']],
    run: async options => (await import('./config-print.ts')).configPrint(options),
  },
  {
    name: 'backup',
    about: 'copy the database into a file and verify the copy, while the server runs',
    arguments: [['<file>', 'must not exist yet']],
    run: async (options, file) => (await import('./backup.ts')).backup(file, options),
  },
  {
    name: 'restore',
    about: 'put a backup in the place of the database; the server must be stopped',
    arguments: [['<file>', 'made by backup, of this version or an older one']],
    options: [['--force', 'replace the database that is there']],
    run: async (options, file) => (await import('./restore.ts')).restore(file, options),
  },
  {
    name: 'migrate-to',
    about: 'copy everything to the other engine and verify it there; the server must be stopped',
    arguments: [['<to>', 'postgres://user:password@host/database, or sqlite for the way back']],
    run: async (options, to) => (await import('./migrate-to.ts')).migrateTo(to, options),
  },
  {
    name: 'check',
    about: 'read the whole database and open every key; exit 1 when anything is damaged',
    run: async options => (await import('./check.ts')).check(options),
  },
  { name: 'events', about: 'the audit log' },
  {
    name: 'events export',
    about: 'print the audit events as JSON Lines, oldest first',
    options: [['--since <time>', 'such as 2026-01-31T08:00:00Z; default all']],
    run: async options => (await import('./events-export.ts')).eventsExport(options),
  },
  {
    name: 'doctor',
    about: 'look at settings, files, database, clock, address and mail; exit 1 when something is wrong',
    run: async options => (await import('./doctor.ts')).doctor(options),
  },
  { name: 'keys', about: 'signing keys and master key: works beside a running server' },
  {
    name: 'keys list',
    about: 'print the signing keys and what each is doing',
    run: async options => (await import('./keys.ts')).keysList(options),
  },
  {
    name: 'keys rotate',
    about: 'publish a next key of each algorithm; it signs a quarter of an hour later',
    run: async options => (await import('./keys.ts')).keysRotate(options),
  },
  {
    name: 'keys revoke',
    about: 'withdraw a compromised key at once, and replace it',
    arguments: [['<id>']],
    run: async (options, id) => (await import('./keys.ts')).keysRevoke(id, options),
  },
  {
    name: 'keys import',
    about: 'take up a key as the next one of its algorithm',
    arguments: [['<file>', 'private key in PEM']],
    options: [['--alg <alg>', 'RS256, RS384 or RS512 for an RSA key']],
    run: async (options, file) => (await import('./keys.ts')).keysImport(file, options),
  },
  {
    name: 'keys export',
    about: 'print a private key (PEM)',
    arguments: [['<id>']],
    run: async (options, id) => (await import('./keys.ts')).keysExport(id, options),
  },
  {
    name: 'keys rekey',
    about: 'change the master key; running servers go on',
    options: [
      ['--new-key-file <file>', 'the new master key, made when there is none; default in the data directory'],
    ],
    run: async options => (await import('./keys.ts')).keysRekey(options),
  },
  {
    name: 'xml-worker',
    about: '',
    hidden: true,
    run: async () => {
      await import('#src/directory/identity-providers/xml-worker.ts')
      // It ends with the connection to the server that started it.
      await new Promise(() => {})
    },
  },
  {
    name: 'guide',
    about: 'read the guide',
    arguments: [['[subject]', 'without it the list of subjects']],
    run: async (_options, subject) => (await import('./guide.ts')).guide(subject),
  },
  { name: 'version', about: 'print the version', run: () => console.log(VERSION) },
]

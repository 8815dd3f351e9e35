/** Over 300 lines on purpose: one list holds all commands and their help texts. */
import type { Command } from 'commander'
import { VERSION_LINE } from '#src/lib/version.ts'

/** Arguments that commander passes to an action. They are untyped; each command declares its own types. */
type Parsed = Parameters<Parameters<Command['action']>[0]>

/** Rules that the parser enforces for an option. */
export interface OptionRule {
  isMandatory?: true
  choices?: readonly string[]
  /** Name of an option that cannot be given together with this option. */
  conflicts?: string
}

/** A command with its arguments, options and action. */
export interface CommandRow {
  /** Groups and command, such as `user create`. */
  name: string
  about: string
  hidden?: boolean
  /** Arguments in their order on the command line, as `<required>`, `[optional]` or `<several...>`. */
  arguments?: readonly (readonly [name: string, about?: string, choices?: readonly string[]])[]
  options?: readonly (readonly [
    flags: string,
    about?: string,
    fallback?: string | undefined,
    rule?: OptionRule,
  ])[]
  /**
   * Runs the command. A group has no `run`.
   *
   * @param options of the command and of the program
   * @param given the arguments in their order, then the program if commander has parsed the command line
   */
  run?(options: Parsed[number], ...given: Parsed): void | Promise<void>
}

const organization = ['--organization <slug>', 'organization of the user', 'default'] as const
const ofOrganization = ['--organization <slug>', 'only those of this organization; default: all'] as const
const jsonLines = ['--json', 'print one JSON object per line'] as const
const onUser = {
  arguments: [['<user>', 'user name, e-mail address or id']],
  options: [organization],
} as const
const seedFile = ['<file>', 'YAML or JSON; - is standard input'] as const
const prune = ['--prune', 'in each section of the file, delete entries that it does not name'] as const
const development = [
  [
    '--seed <file>',
    'data at the start and after a reset; default: seed_file of the settings; without one, two users (alice, admin) and two clients',
  ],
  ['--url <url>', 'issuer; default: GATEHOUSE_URL, or http://localhost:<port> (https with --tls)'],
  ['--internal-url <url>', 'address for server-to-server calls when it differs from the issuer (containers)'],
  ['--public-issuer', 'accept an issuer whose host is not this machine'],
  ['--host <address>', 'address to listen on; default 127.0.0.1'],
  [
    '--dev-host <host...>',
    'host name that the server also accepts (other hosts get 421); an IP address is also the address to listen on, and opens the controls to other machines (containers)',
  ],
  ['--tls', 'serve https with a generated certificate'],
  ['--auto-login', 'sign in the user of a login_hint at once, without the sign-in page'],
  ['--key <file>', 'private JWK that signs the tokens of its algorithm'],
  ['--data-dir <dir>', 'keep the data in this directory; default: a temporary one'],
] as const

/**
 * All commands, in the order of the help. A command imports its code when it runs, which keeps the start of
 * `serve` short.
 */
export const commands: readonly CommandRow[] = [
  {
    name: 'serve',
    about: 'run the server',
    run: async options => (await import('./serve.ts')).serve(options),
  },
  { name: 'user', about: 'create, list, unlock and reset users; works beside a running server' },
  {
    name: 'user link',
    about: 'print a single-use sign-in link, valid for 30 minutes',
    arguments: [['[user]', 'user name, e-mail address or id; default: a set-up link for the first admin']],
    options: [organization],
    run: async (options, name) => (await import('./user-link.ts')).userLink(name, options),
  },
  {
    name: 'user create',
    about: 'create a user',
    arguments: [['<username>']],
    options: [
      ['--email <address>', 'e-mail address of the user', undefined, { isMandatory: true }],
      ['--first-name <name>', 'first name; default: empty'],
      ['--last-name <name>', 'last name; default: empty'],
      ['--role <role...>', 'roles of the user; default: user'],
      organization,
      [
        '--password',
        'read the password from standard input; default: print a sign-in link',
        undefined,
        { conflicts: 'invite' },
      ],
      ['--invite', 'mail an invitation, with which the user chooses a password or a passkey'],
    ],
    run: async (options, name) => (await import('./user-create.ts')).userCreate(name, options),
  },
  {
    name: 'user list',
    about: 'print the users, oldest first',
    options: [
      ofOrganization,
      ['--search <text>', 'only users whose names or address contain each word of this text'],
      jsonLines,
    ],
    run: async options => (await import('./user-list.ts')).userList(options),
  },
  {
    ...onUser,
    name: 'user password',
    about: 'set a password from standard input and end all sessions of the user',
    options: [organization, ['--temporary', 'require a new password at the next sign-in']],
    run: async (options, name) => (await import('./user-password.ts')).userPassword(name, options),
  },
  {
    ...onUser,
    name: 'user unlock',
    about: 'delete the counts of failed sign-ins of a user',
    run: async (options, name) => (await import('./user-unlock.ts')).userUnlock(name, options),
  },
  {
    ...onUser,
    name: 'user reset-mfa',
    about: 'remove all second factors and recovery codes of a user',
    run: async (options, name) => (await import('./user-reset-mfa.ts')).userResetMfa(name, options),
  },
  { name: 'client', about: 'connect applications; works beside a running server' },
  {
    name: 'client create',
    about: 'register an application and print what to paste into its settings, with the secret',
    arguments: [['<name>', 'client_id and displayed name; 3 to 128 letters, digits and - . _ ~ : /']],
    options: [
      [
        '--kind <kind>',
        'web: has a server; spa: runs in the browser; native: runs on a device; service: signs no one in',
        undefined,
        { choices: ['web', 'spa', 'native', 'service'], isMandatory: true },
      ],
      [
        '--redirect <url...>',
        'address of the application that a sign-in returns to; compared exactly, but http://127.0.0.1/… without a port matches any port',
      ],
      [
        '--post-logout-redirect <url...>',
        'addresses that a logout may return to; default: the front page of each http(s) redirect URL',
      ],
      ['--no-consent', 'do not ask users for consent; for your own applications'],
      [
        '--scope <scope...>',
        'scopes that the application may request; default: openid profile email offline_access, for a service none',
      ],
      [
        '--id-token-on-refresh',
        'each refresh also gives a new ID token, which kubectl and MSAL need; other applications need none',
      ],
      ['--organization <slug>', 'organization of the application', 'default'],
      ['--json', 'print one JSON object'],
    ],
    run: async (options, name) => (await import('./client-create.ts')).clientCreate(name, options),
  },
  {
    name: 'client list',
    about: 'print the registered applications, oldest first',
    options: [
      ofOrganization,
      ['--dynamic', 'print only the applications that no administrator registered'],
      jsonLines,
    ],
    run: async options => (await import('./client-list.ts')).clientList(options),
  },
  {
    name: 'client secret',
    about: 'replace the secret of an application and print the new one, which is shown once',
    arguments: [['<client_id>']],
    run: async (options, id) => (await import('./client-secret.ts')).clientSecret(id, options),
  },
  {
    name: 'client delete',
    about: 'delete an application and end its sessions',
    arguments: [['<client_id>']],
    run: async (options, id) => (await import('./client-delete.ts')).clientDelete(id, options),
  },
  {
    name: 'healthcheck',
    about: 'exit 0 when the server is ready, 1 when not',
    options: [['--url <url>', 'address of the server; default: from the settings']],
    run: async options => (await import('./healthcheck.ts')).healthcheck(options),
  },
  {
    name: 'dev',
    about: 'run a temporary server with users, clients and test controls',
    options: [
      ...development,
      ['--port <port>', 'port to listen on, 0 for a free one', '8080'],
      [
        '--mcp',
        'allow applications that no administrator registered, and run an MCP server on the next port',
      ],
      ['--ready-file <file>', 'write the ready line to this file when the server answers'],
      [
        '--until-input-ends',
        'stop when standard input ends, for example because the parent process was killed; a seed on standard input must end with the line `...`',
      ],
    ],
    run: async options => (await import('./dev.ts')).dev(options),
  },
  {
    name: 'exec',
    about: 'run a command with its own temporary server',
    arguments: [
      [
        '<command...>',
        'command after --; its environment has SERVICE_URL, SERVICE_REALM, SERVICE_CLIENT_ID, SERVICE_DEV_TOKEN and, for a client with a secret, SERVICE_CLIENT_SECRET; see `gatehouse guide ci`',
      ],
    ],
    options: [
      ...development,
      ['--port <port>', 'port to listen on; default: a free one'],
      [
        '--client <client_id>',
        'client for SERVICE_CLIENT_ID; default: the first confidential client, otherwise the first client',
      ],
      ['--config <file>', 'settings file (YAML or JSON); environment variables take precedence'],
    ],
    run: async (options, command) => {
      process.exitCode = await (await import('./exec.ts')).exec(command, options)
    },
  },
  {
    name: 'token',
    about: 'print an access token',
    options: [
      [
        '--user <user>',
        "user name, e-mail address or id; required in production; default: the client's own token (development)",
      ],
      organization,
      [
        '--client <client_id>',
        'client that the token is issued to; required in production; default: the first confidential client, otherwise the first (development)',
      ],
      ['--scope <scopes>', "scopes, separated by spaces; default: the client's"],
      ['--role <role...>', "roles in the token instead of the user's roles (development)"],
      ['--claim <name=value...>', 'claims to set (development)'],
      ['--bad <name>', 'invalid token for tests, such as expired (development)'],
      ['--expires-in <duration>', 'lifetime, such as 15m; a number alone is seconds'],
      [
        '--data-dir <dir>',
        'directory of the instance; default: data_dir of the settings if it contains an instance, otherwise the directory of the running development server',
      ],
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
    about: 'create and change organizations, users, clients … as in the file',
    arguments: [seedFile],
    options: [prune],
    run: async (options, file) => (await import('./apply.ts')).apply(file, options),
  },
  {
    name: 'export',
    about: 'write the instance as a seed file for `gatehouse apply`',
    arguments: [['[file]', 'file to write or replace; default: standard output']],
    options: [
      [
        '--secrets',
        'include hashes of passwords and client secrets, and the secrets of identity providers and webhooks',
      ],
      ['--pictures', 'include the pictures of people, up to 350 kB each'],
    ],
    run: async (options, file) => (await import('./export.ts')).exportInstance(file, options),
  },
  {
    name: 'openapi',
    about: "print the admin API's OpenAPI 3.1 document",
    options: [['--seed-schema', 'print the JSON Schema of seed files instead']],
    run: async options => (await import('./openapi.ts')).openapi(options),
  },
  { name: 'config', about: 'check and print the settings' },
  {
    name: 'config check',
    about: 'check the settings and the files that they name',
    run: async options => (await import('./config-check.ts')).configCheck(options),
  },
  {
    name: 'config print',
    about: 'print each setting with its value and source',
    options: [['--redacted', 'hide secrets (a terminal never shows them)']],
    run: async options => (await import('./config-print.ts')).configPrint(options),
  },
  {
    name: 'backup',
    about: 'copy the database to a file and verify the copy, while the server runs',
    arguments: [['<file>', 'file to write; must not exist']],
    run: async (options, file) => (await import('./backup.ts')).backup(file, options),
  },
  {
    name: 'restore',
    about: 'replace the database with a backup; stop the server first',
    arguments: [['<file>', 'backup of this version or an older one']],
    options: [['--force', 'replace an existing database']],
    run: async (options, file) => (await import('./restore.ts')).restore(file, options),
  },
  {
    name: 'migrate-to',
    about: 'copy the instance to the other engine and verify the copy; stop the server first',
    arguments: [['<to>', 'postgres://user:password@host/database, or sqlite to go back']],
    run: async (options, to) => (await import('./migrate-to.ts')).migrateTo(to, options),
  },
  {
    name: 'check',
    about: 'read the whole database and open every key; exit 1 when damage is found',
    run: async options => (await import('./check.ts')).check(options),
  },
  { name: 'events', about: 'read the audit log' },
  {
    name: 'events export',
    about: 'print the audit events of the database as JSON Lines, oldest first',
    options: [
      ['--since <time>', 'only events from this time on, such as 2026-01-31T08:00:00Z; default: all'],
    ],
    run: async options => (await import('./events-export.ts')).eventsExport(options),
  },
  { name: 'webhooks', about: 'receive events in a program of your own' },
  {
    name: 'webhooks listen',
    about: 'forward new events to a URL, signed like webhook deliveries, until stopped',
    options: [
      ['--forward <url>', 'address of your program', undefined, { isMandatory: true }],
      ['--events <type...>', 'event types; * stands for any text; default: all'],
      ['--secret <secret>', 'signing secret that begins with whsec_; default: a new one, which is printed'],
      ['--url <url>', 'read from another server; needs --client and SERVICE_CLIENT_SECRET'],
      ['--client <id>', 'client with the permission events:read'],
      [
        '--data-dir <dir>',
        'data directory; default: data_dir of the settings if it contains an instance, otherwise the directory of the running development server',
      ],
    ],
    run: async options => (await import('./webhooks-listen.ts')).webhooksListen(options),
  },
  {
    name: 'doctor',
    about: 'check settings, files, database, clock, address, mail and webhooks; exit 1 when a check fails',
    run: async options => (await import('./doctor.ts')).doctor(options),
  },
  { name: 'keys', about: 'manage signing keys and master key; works beside a running server' },
  {
    name: 'keys list',
    about: 'print the signing keys and their states',
    run: async options => (await import('./keys.ts')).keysList(options),
  },
  {
    name: 'keys rotate',
    about: 'publish the next key of each algorithm; it signs 15 minutes later',
    run: async options => (await import('./keys.ts')).keysRotate(options),
  },
  {
    name: 'keys revoke',
    about: 'withdraw a compromised key at once and replace it',
    arguments: [['<id>']],
    run: async (options, id) => (await import('./keys.ts')).keysRevoke(id, options),
  },
  {
    name: 'keys import',
    about: 'import a key as the next one of its algorithm',
    arguments: [['<file>', 'private key in PEM']],
    options: [['--alg <alg>', 'RS256, RS384 or RS512 for an RSA key']],
    run: async (options, file) => (await import('./keys.ts')).keysImport(file, options),
  },
  {
    name: 'keys export',
    about: 'print a private key in PEM',
    arguments: [['<id>']],
    run: async (options, id) => (await import('./keys.ts')).keysExport(id, options),
  },
  {
    name: 'keys rekey',
    about: 'change the master key; running servers continue',
    options: [
      [
        '--new-key-file <file>',
        'file of the new master key, created if missing; default: in the data directory',
      ],
    ],
    run: async options => (await import('./keys.ts')).keysRekey(options),
  },
  {
    name: 'worker',
    about: '',
    hidden: true,
    options: [['--first'], ['--upgrade']],
    run: async options => (await import('./worker.ts')).worker(options),
  },
  {
    name: 'xml-worker',
    about: '',
    hidden: true,
    run: async () => {
      await import('#src/directory/identity-providers/xml-worker.ts')
      // This promise never resolves: the worker exits when its connection to the server closes.
      await new Promise(() => {})
    },
  },
  {
    name: 'guide',
    about: 'read the guide, or search it for a word',
    arguments: [['[subject]', 'page to print, or word to find; default: the list of pages']],
    run: async (_options, subject) => (await import('./guide.ts')).guide(subject),
  },
  {
    name: 'completion',
    about: 'print a script that completes commands and options in the shell',
    arguments: [['<shell>', 'shell that reads the script', ['bash', 'zsh', 'fish']]],
    run: async (_options, shell, program) => (await import('./completion.ts')).completion(shell, program),
  },
  {
    name: 'man',
    about: 'print the manual page gatehouse(1)',
    run: async (_options, program) => (await import('./man.ts')).man(program),
  },
  {
    name: 'licenses',
    about: 'print the libraries in this executable and their licences',
    run: async () => (await import('./licenses.ts')).licenses(),
  },
  {
    name: 'sbom',
    about: 'print a software bill of materials in JSON',
    options: [
      ['--format <format>', 'CycloneDX 1.6 or SPDX 2.3', 'cyclonedx', { choices: ['cyclonedx', 'spdx'] }],
    ],
    run: async options => (await import('./sbom.ts')).sbom(options),
  },
  {
    name: 'version',
    about: 'print the version, commit and runtime',
    run: async () => (await import('./print.ts')).print(VERSION_LINE),
  },
]

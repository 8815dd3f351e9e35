import { Command, CommanderError } from 'commander'
import { settings } from '#src/config.ts'
import { VERSION } from '#src/lib/version.ts'

/** Commands load their code when they are called: `serve` must not wait for what only others need. */
const program = (): Command => {
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
  gatehouse
    .command('healthcheck')
    .option('--url <url>', 'server to ask; default from the settings')
    .description('exit 0 when the server is ready, 1 when not')
    .action(async options =>
      (await import('./healthcheck.ts')).healthcheck({ ...gatehouse.opts(), ...options }),
    )
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
  gatehouse
    .command('config')
    .description('look at the settings')
    .command('print')
    .option('--redacted', 'hide secrets (they are hidden on a terminal anyway)')
    .description('print each setting with its value and where it came from')
    .action(async options =>
      (await import('./config-print.ts')).configPrint({ ...gatehouse.opts(), ...options }),
    )
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

First steps:
  gatehouse serve              makes its keys, its database and a link to create the first admin
  gatehouse user link          prints that link again`
}

/** Runs a command; the exit code: 0 done, 1 failed, 2 wrong use or setting, 3 the store refused. */
export const run = async (args: string[]): Promise<number> => {
  try {
    await program().parseAsync(args, { from: 'user' })
    return Number(process.exitCode ?? 0)
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
    const { message, exit_code = 1 } = error as Error & { exit_code?: number }
    console.error(`gatehouse: ${message}`)
    if (exit_code === 1 && process.env.GATEHOUSE_LOG_LEVEL === 'debug') console.error(error)
    return exit_code
  }
}

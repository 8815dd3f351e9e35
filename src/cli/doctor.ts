import { readFileSync, statfsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { pino } from 'pino'
import { latestEvent } from '#src/audit/store.ts'
import { type Config, loadConfig } from '#src/config.ts'
import { usedThemes } from '#src/directory/organizations/store.ts'
import { checkThemes } from '#src/http/themes.ts'
import { iso } from '#src/lib/text.ts'
import { DATABASE_FILE } from '#src/storage/open.ts'
import { checkFiles } from './config-check.ts'
import { MASTER_KEY_FILE, openExisting } from './instance.ts'

/** What a look found: nothing wrong, something that the operator should know, something that does not work. */
interface Finding {
  state: 'ok' | 'warn' | 'fail'
  text: string
}
const ok = (text: string): Finding => ({ state: 'ok', text })
const warn = (text: string): Finding => ({ state: 'warn', text })
const fail = (text: string): Finding => ({ state: 'fail', text })

const PATIENCE = 5_000
const MB = 2 ** 20
/** Clocks that differ by more break logins at providers, and tokens here. */
const SKEW = 5_000

type Look = (config: Config) => Finding | Promise<Finding>

const files: Look = config => {
  checkFiles(config)
  return ok('the files that the settings name can be read')
}

const modes: Look = ({ data_dir }) => {
  const secret = [DATABASE_FILE, MASTER_KEY_FILE, 'admin-client.json'].map(name => join(data_dir, name))
  const open = [data_dir, ...secret].filter(path => (modeOf(path) & 0o077) !== 0)
  return open.length === 0
    ? ok('only their owner can read the data')
    : warn(`others may read ${open.join(', ')}: chmod go= them`)
}

const modeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.mode ?? 0

const database: Look = async config => {
  const { store } = await openExisting(config, pino({ level: 'silent' }))
  try {
    const ahead = ((await store.read(latestEvent)) ?? 0) - Date.now()
    return ahead > SKEW
      ? fail(`the clock is behind the latest event (${iso(Date.now() + ahead)}): set it`)
      : ok('the database opens with this master key')
  } finally {
    await store.close()
  }
}

const disk: Look = ({ data_dir }) => {
  const { bavail, bsize } = statfsSync(data_dir)
  const free = Math.floor((bavail * bsize) / MB)
  return (free < 100 ? fail : free < 1_000 ? warn : ok)(`${free} MiB are free for ${data_dir}`)
}

const sockets: Look = () => {
  const limit = Number(/^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1])
  return (limit < 4_096 ? warn : ok)(`${limit} files and connections may be open at once`)
}

const scheme: Look = config => {
  const { hostname, protocol } = new URL(config.url)
  if (protocol === 'http:')
    return ['localhost', '127.0.0.1', '[::1]'].includes(hostname)
      ? ok('plain http, on this machine alone')
      : warn(`${config.url}: without https passwords and tokens travel in the clear`)
  return config.tls_cert || config.trusted_proxies.length > 0
    ? ok(`https ends ${config.tls_cert ? 'here' : 'at a trusted proxy'}`)
    : warn('https ends at a proxy, but trusted_proxies is empty: every client seems to have its address')
}

const address: Look = async ({ url }) => {
  const asked = Date.now()
  const answer = await fetch(`${url}/.well-known/openid-configuration`, {
    signal: AbortSignal.timeout(PATIENCE),
    redirect: 'manual',
  })
  const { issuer } = (await answer.json()) as { issuer?: unknown }
  if (issuer !== url) return fail(`${url} is answered by another server: its issuer is ${String(issuer)}`)
  const skew = Math.abs(Date.parse(answer.headers.get('date') ?? '') - asked)
  return skew > SKEW + 1_000
    ? warn(`${url} answers, with a clock that differs by ${Math.round(skew / 1_000)} s`)
    : ok(`${url} answers`)
}

const mail: Look = async ({ smtp_url, mail_from }) => {
  if (!smtp_url) return warn('no smtp_url: nobody can be sent a mail')
  const { createTransport } = await import('nodemailer')
  await createTransport({ url: smtp_url, connectionTimeout: PATIENCE, greetingTimeout: PATIENCE }).verify()
  return mail_from ? ok('the mail server takes our mail') : warn('no mail_from: mail has no sender')
}

const themes: Look = async config => {
  const { store } = await openExisting(config, pino({ level: 'silent' }))
  try {
    const findings = checkThemes(config, await store.read(usedThemes))
    return findings.length > 0 ? warn(findings.join('; ')) : ok('every theme that is used exists')
  } finally {
    await store.close()
  }
}

const looks: Record<string, Look> = { files, modes, database, themes, disk, sockets, scheme, address, mail }

/** Looks at what `serve` depends on, a line each; exit code 1 when something does not work. */
export const doctor = async (options: { config?: string }): Promise<void> => {
  const { config, warnings } = loadConfig(process.env, options.config)
  for (const warning of warnings) console.log(`warn  settings  ${warning}`)
  let failed = 0
  for (const [name, look] of Object.entries(looks)) {
    const { state, text } = await settle(look, config)
    if (state === 'fail') failed++
    console.log(`${state.padEnd(4)}  ${name.padEnd(8)}  ${text}`)
  }
  if (failed > 0) throw new Error(failed === 1 ? 'one thing is wrong' : `${failed} things are wrong`)
}

const settle = async (look: Look, config: Config): Promise<Finding> => {
  try {
    return await look(config)
  } catch (error) {
    return fail(error instanceof Error ? error.message : String(error))
  }
}

import { existsSync, readFileSync, statfsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { pino } from 'pino'
import { latestEvent } from '#src/audit/store.ts'
import { type Config, loadConfig } from '#src/config.ts'
import { usedThemes } from '#src/directory/organizations/store.ts'
import { DAY } from '#src/lib/duration.ts'
import { iso } from '#src/lib/text.ts'
import { smtpOptions } from '#src/mail/smtp.ts'
import { EVENT_LOOP_HOLD } from '#src/operations/event-loop.ts'
import { checkThemes } from '#src/pages/themes.ts'
import { DATABASE_FILE } from '#src/storage/open.ts'
import { readCertificate } from './certificate.ts'
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
const GB = 1e9
/** Certificates are mostly renewed a month before their end. */
const CERTIFICATE_LEFT = 14 * DAY
/** Clocks that differ by more break logins at providers, and tokens here. */
const SKEW = 5_000

type Look = (config: Config) => Finding | Promise<Finding>

const files: Look = async config => {
  await checkFiles(config)
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
  const free = (bavail * bsize) / GB
  return (free < 0.1 ? fail : free < 1 ? warn : ok)(`${free.toFixed(1)} GB are free for ${data_dir}`)
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
  const certificate = readCertificate(config)
  if (certificate) {
    const left = certificate.runs_out - Date.now()
    const until = `https ends here; the certificate is good until ${iso(certificate.runs_out)}`
    return left < 0 ? fail(until) : left < CERTIFICATE_LEFT ? warn(until) : ok(until)
  }
  return config.trusted_proxies.length > 0
    ? ok('https ends at a trusted proxy')
    : warn('https ends at a proxy, but trusted_proxies is empty: every client seems to have its address')
}

/** Why another machine could not be talked to, in a word. */
const reasonOf = (error: unknown): string => {
  const { code, name, message } = error as Error & { code?: string }
  return code ?? (name === 'TimeoutError' ? 'no answer in time' : message)
}

const address: Look = async ({ url }) => {
  const asked = Date.now()
  const answer = await fetch(`${url}/.well-known/openid-configuration`, {
    signal: AbortSignal.timeout(PATIENCE),
    redirect: 'manual',
  }).catch(reasonOf)
  if (typeof answer === 'string') return fail(`${url} cannot be reached (${answer}): is the server running?`)
  const { issuer } = ((await answer.json().catch(() => undefined)) ?? {}) as { issuer?: unknown }
  if (issuer !== url)
    return fail(
      `${url} is answered by another server: ${issuer === undefined ? `status ${answer.status}` : `its issuer is ${String(issuer)}`}`,
    )
  const skew = Math.abs(Date.parse(answer.headers.get('date') ?? '') - asked)
  return skew > SKEW + 1_000
    ? warn(`${url} answers, with a clock that differs by ${Math.round(skew / 1_000)} s`)
    : ok(`${url} answers`)
}

/** Seconds; the server answers nobody meanwhile. */
const LONG_HOLD = 0.5

const loop: Look = async ({ url, metrics_token }) => {
  const answer = await fetch(`${url}/metrics`, {
    signal: AbortSignal.timeout(PATIENCE),
    redirect: 'manual',
    headers: metrics_token === undefined ? {} : { authorization: `Bearer ${metrics_token}` },
  }).catch(reasonOf)
  const text = typeof answer === 'string' ? '' : await answer.text().catch(() => '')
  const held = new RegExp(`^${EVENT_LOOP_HOLD} (\\S+)$`, 'm').exec(text)?.[1]
  if (held === undefined)
    return ok(
      `how long the event loop was held is not known: ${url}/metrics does not say (metrics_token opens it)`,
    )
  const found = `the event loop was held for at most ${Number(held).toFixed(3)} s in the last minute`
  return Number(held) > LONG_HOLD ? warn(`${found}: all requests waited`) : ok(found)
}

const mail: Look = async ({ smtp_url, mail_from }) => {
  if (!smtp_url) return warn('no smtp_url: nobody can be sent a mail')
  const { createTransport } = await import('nodemailer')
  const transport = createTransport(smtpOptions(smtp_url))
  const refused = await transport.verify().then(
    () => undefined,
    (error: Error) => error.message,
  )
  if (refused) return fail(`the mail server of smtp_url does not take us (${refused})`)
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

/** Where there is no instance, what is looked for in it would only fail the same way again. */
const ofInstance: ReadonlySet<string> = new Set(['modes', 'themes', 'disk'])
const looks: Record<string, Look> = {
  files,
  modes,
  database,
  themes,
  disk,
  sockets,
  scheme,
  address,
  loop,
  mail,
}

/** Looks at what `serve` depends on, a line each; exit code 1 when something does not work. */
export const doctor = async (options: { config?: string }): Promise<void> => {
  const { config, warnings } = loadConfig(process.env, options.config)
  for (const warning of warnings) console.log(`warn  settings  ${warning}`)
  const isThere = config.database_url || existsSync(join(config.data_dir, DATABASE_FILE))
  let failed = 0
  for (const [name, look] of Object.entries(looks)) {
    if (!isThere && ofInstance.has(name)) continue
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

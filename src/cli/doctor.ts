import { existsSync, readFileSync, statfsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { pino } from 'pino'
import { latestEvent } from '#src/audit/store.ts'
import type { Config } from '#src/config.ts'
import { offersRegistration, usedThemes } from '#src/directory/organizations/store.ts'
import { DAY } from '#src/lib/duration.ts'
import { iso } from '#src/lib/text.ts'
import { smtpOptions } from '#src/mail/smtp.ts'
import { EVENT_LOOP_HOLD } from '#src/operations/event-loop.ts'
import { checkThemes } from '#src/pages/themes.ts'
import { DATABASE_FILE } from '#src/storage/open.ts'
import { troubledWebhooks } from '#src/webhooks/store.ts'
import { readCertificate } from './certificate.ts'
import { checkFiles } from './config-check.ts'
import { MASTER_KEY_FILE, openExisting } from './instance.ts'
import { loadServerConfig } from './last-start.ts'

/** Result of one check: works, should be known, does not work, could not be checked. */
interface Finding {
  state: 'ok' | 'warn' | 'fail' | 'skip'
  text: string
}
const ok = (text: string): Finding => ({ state: 'ok', text })
const warn = (text: string): Finding => ({ state: 'warn', text })
const fail = (text: string): Finding => ({ state: 'fail', text })
/** @param text what to do to have it checked */
const skip = (text: string): Finding => ({ state: 'skip', text })

const TIMEOUT = 5_000
/** Webhooks that one line names. */
const NAMED = 10
const GB = 1e9
/** Milliseconds. Certificates are usually renewed a month before they expire. */
const CERTIFICATE_LEFT = 14 * DAY
/** Milliseconds. A larger difference between clocks breaks logins at providers and tokens of this server. */
const SKEW = 5_000

type Check = (config: Config) => Finding | Promise<Finding>

const files: Check = async config => {
  await checkFiles(config)
  return ok('the files that the settings name can be read')
}

const modes: Check = ({ data_dir }) => {
  const secret = [DATABASE_FILE, MASTER_KEY_FILE, 'admin-client.json'].map(name => join(data_dir, name))
  const open = [data_dir, ...secret].filter(path => (modeOf(path) & 0o077) !== 0)
  return open.length === 0
    ? ok('only the owner can read the data directory')
    : warn(`other users can read ${open.join(', ')}: run chmod go= on them`)
}

const modeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.mode ?? 0

const database: Check = async config => {
  const { store } = await openExisting(config, pino({ level: 'silent' }))
  try {
    const ahead = ((await store.read(latestEvent)) ?? 0) - Date.now()
    return ahead > SKEW
      ? fail(`the clock is behind the latest event (${iso(Date.now() + ahead)}): correct the clock`)
      : ok('the database opens with this master key')
  } finally {
    await store.close()
  }
}

const disk: Check = ({ data_dir }) => {
  const { bavail, bsize } = statfsSync(data_dir)
  const free = (bavail * bsize) / GB
  return (free < 0.1 ? fail : free < 1 ? warn : ok)(`${free.toFixed(1)} GB free for ${data_dir}`)
}

const sockets: Check = () => {
  const limit = Number(/^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1])
  return (limit < 4_096 ? warn : ok)(`${limit} files and connections can be open at once`)
}

const scheme: Check = config => {
  const { hostname, protocol } = new URL(config.url)
  if (protocol === 'http:')
    return ['localhost', '127.0.0.1', '[::1]'].includes(hostname)
      ? ok('plain http, reachable from this machine only')
      : warn(`${config.url}: without https, passwords and tokens are sent unencrypted`)
  const certificate = readCertificate(config)
  if (certificate) {
    const left = certificate.expires_at - Date.now()
    const until = `https ends here; the certificate expires at ${iso(certificate.expires_at)}`
    return left < 0 ? fail(until) : left < CERTIFICATE_LEFT ? warn(until) : ok(until)
  }
  return config.trusted_proxies.length > 0
    ? ok('https ends at a trusted proxy')
    : warn(
        'https ends at a proxy, but trusted_proxies is empty: set it, or all clients share the address of the proxy',
      )
}

/** Returns the reason that a connection failed, in a word. */
const reasonOf = (error: unknown): string => {
  const { code, name, message } = error as Error & { code?: string }
  return code ?? (name === 'TimeoutError' ? 'no answer in time' : message)
}

const address: Check = async ({ url }) => {
  const sent_at = Date.now()
  const answer = await fetch(`${url}/.well-known/openid-configuration`, {
    signal: AbortSignal.timeout(TIMEOUT),
    redirect: 'manual',
  }).catch(reasonOf)
  if (typeof answer === 'string') return fail(`${url} cannot be reached (${answer}): is the server running?`)
  const { issuer } = ((await answer.json().catch(() => undefined)) ?? {}) as { issuer?: unknown }
  if (issuer !== url)
    return fail(
      `another server answers at ${url}: ${issuer === undefined ? `status ${answer.status}` : `its issuer is ${String(issuer)}`}`,
    )
  const skew = Math.abs(Date.parse(answer.headers.get('date') ?? '') - sent_at)
  return skew > SKEW + 1_000
    ? warn(`${url} answers, but its clock differs by ${Math.round(skew / 1_000)} s`)
    : ok(`${url} answers`)
}

/** Seconds for which the event loop may be blocked before doctor warns. */
const LONG_HOLD = 0.5

const loop: Check = async ({ url, metrics_token }) => {
  const answer = await fetch(`${url}/metrics`, {
    signal: AbortSignal.timeout(TIMEOUT),
    redirect: 'manual',
    headers: metrics_token === undefined ? {} : { authorization: `Bearer ${metrics_token}` },
  }).catch(reasonOf)
  if (typeof answer === 'string') return skip('the event loop: start the server to have it checked')
  const text = await answer.text().catch(() => '')
  const held = new RegExp(`^${EVENT_LOOP_HOLD} (\\S+)$`, 'm').exec(text)?.[1]
  if (held === undefined)
    return skip(`the event loop: ${url}/metrics is closed; set metrics_token to have it checked`)
  const found = `the event loop was held for at most ${Number(held).toFixed(3)} s in the last minute`
  return Number(held) > LONG_HOLD ? warn(`${found}, and all requests waited`) : ok(found)
}

const hasRegistration = async (config: Config): Promise<boolean> => {
  if (!hasInstance(config)) return false
  const { store } = await openExisting(config, pino({ level: 'silent' }))
  return offersRegistration(store).finally(() => store.close())
}

const mail: Check = async config => {
  const { smtp_url, mail_from } = config
  if (!smtp_url || !mail_from) {
    const lost = (await hasRegistration(config)) ? ', and nobody can register' : ''
    if (!smtp_url) return warn(`no mail can be sent${lost}: set smtp_url and mail_from`)
    if (lost) return warn(`mail has no sender${lost}: set mail_from`)
  }
  const { createTransport } = await import('nodemailer')
  const transport = createTransport(smtpOptions(smtp_url))
  const refused = await transport.verify().then(
    () => undefined,
    (error: Error) => error.message,
  )
  if (refused) return fail(`the mail server of smtp_url refuses the connection (${refused})`)
  return mail_from ? ok('the mail server accepts the connection') : warn('mail has no sender: set mail_from')
}

const themes: Check = async config => {
  const { store } = await openExisting(config, pino({ level: 'silent' }))
  try {
    const findings = checkThemes(config, await store.read(usedThemes))
    return findings.length > 0 ? warn(findings.join('; ')) : ok('all themes in use exist')
  } finally {
    await store.close()
  }
}

const webhooks: Check = async config => {
  const { store } = await openExisting(config, pino({ level: 'silent' }))
  try {
    const names = await store.read(q => troubledWebhooks(q, NAMED))
    return names.length === 0
      ? ok('no webhook fails')
      : warn(`events do not arrive at ${names.join(', ')}: the deliveries of each webhook say why`)
  } finally {
    await store.close()
  }
}

/** Checks that would all fail for the same reason without an instance, with what they look at. */
const needInstance: Record<string, string> = {
  modes: 'the modes of the files',
  themes: 'the themes in use',
  disk: 'the free space',
  webhooks: 'the webhooks',
}
const checks: Record<string, Check> = {
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
  webhooks,
}

const hasInstance = ({ database_url, data_dir }: Config): boolean =>
  Boolean(database_url) || existsSync(join(data_dir, DATABASE_FILE))

/** Checks every dependency of `serve` and prints a line for each check. Exit code 1 when a check fails. */
export const doctor = async (options: { config?: string }): Promise<void> => {
  const { config, warnings } = loadServerConfig(options)
  for (const warning of warnings) console.log(`warn  settings  ${warning}`)
  const isMade = hasInstance(config)
  let failed = 0
  for (const [name, check] of Object.entries(checks)) {
    const subject = isMade ? undefined : needInstance[name]
    const { state, text } = subject
      ? skip(`${subject}: create an instance with \`gatehouse serve\` to have it checked`)
      : await runCheck(check, config)
    if (state === 'fail') failed++
    console.log(`${state.padEnd(4)}  ${name.padEnd(8)}  ${text}`)
  }
  if (failed > 0) throw new Error(failed === 1 ? 'one thing is wrong' : `${failed} things are wrong`)
}

const runCheck = async (look: Check, config: Config): Promise<Finding> => {
  try {
    return await look(config)
  } catch (error) {
    return fail(error instanceof Error ? error.message : String(error))
  }
}

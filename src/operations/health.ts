import { existsSync, readFileSync, statfsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { latestEvent } from '#src/audit/store.ts'
import { areEventsHeld } from '#src/audit/stream-store.ts'
import { type Config, ConfigError } from '#src/config.ts'
import type { Context } from '#src/context.ts'
import {
  lockedOut,
  offersEmailCodes,
  offersRegistration,
  usedThemes,
} from '#src/directory/organizations/store.ts'
import { type AdminRoute, route } from '#src/http/guard.ts'
import { DAY, MINUTE } from '#src/lib/duration.ts'
import { MASTER_KEY_FILE } from '#src/lib/master-key.ts'
import { iso } from '#src/lib/text.ts'
import { VERSION } from '#src/lib/version.ts'
import { smtpOptions } from '#src/mail/smtp.ts'
import { checkThemes } from '#src/pages/themes.ts'
import { StorageError } from '#src/storage/errors.ts'
import { DATABASE_FILE } from '#src/storage/open.ts'
import type { Store } from '#src/storage/store.ts'
import { troubledWebhooks } from '#src/webhooks/store.ts'
import { readCertificate } from './certificate.ts'
import { EVENT_LOOP_HOLD } from './event-loop.ts'
import { checkFiles } from './files.ts'
import { isLocalHost } from './metrics.ts'

/**
 * Result of a check. `warn` marks a fact that the operator should know. `skip` marks a check that was not
 * made.
 */
export interface Finding {
  state: 'ok' | 'warn' | 'fail' | 'skip'
  text: string
}
/** Returns the finding of a check that found no problem. */
export const ok = (text: string): Finding => ({ state: 'ok', text })
/** Returns a finding that the operator should know about. */
export const warn = (text: string): Finding => ({ state: 'warn', text })
/** Returns the finding of a failed check. */
export const fail = (text: string): Finding => ({ state: 'fail', text })
/**
 * Returns the finding of a check that was not made.
 *
 * @param text what was not checked, and what the operator can do
 */
export const skip = (text: string): Finding => ({ state: 'skip', text })

/** The instance to check. The checks run in the server itself or in a command on the server's machine. */
export interface Inspected {
  config: Config
  /** Milliseconds since the epoch. */
  now: number
  /** Calls `use` with the open store. */
  withStore<T>(use: (store: Store) => Promise<T>): Promise<T>
}

/** Maximum number of webhooks that a finding names. */
const NAMED = 10
const GB = 1e9
/**
 * The check warns when a certificate expires within this time (ms). Certificates are usually renewed a month
 * before they expire.
 */
const CERTIFICATE_LEFT = 14 * DAY
/**
 * Milliseconds by which clocks may differ. With a larger difference, services refuse new tokens. With a
 * difference of a minute, logins through providers fail too.
 */
export const SKEW = 5_000

export type Check = (checked: Inspected) => Finding | Promise<Finding>

const files: Check = async ({ config, now }) => {
  await checkFiles(config, now)
  return ok('the files that the settings name can be read')
}

const modes: Check = ({ config: { data_dir } }) => {
  const secret = [DATABASE_FILE, MASTER_KEY_FILE, 'admin-client.json'].map(name => join(data_dir, name))
  const open = [data_dir, ...secret].filter(path => (modeOf(path) & 0o077) !== 0)
  return open.length === 0
    ? ok('only the owner can read the data directory')
    : warn(`other users can read ${open.join(', ')}: run chmod go= on them`)
}

const modeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.mode ?? 0

const database: Check = ({ now, withStore }) =>
  withStore(async store => {
    const ahead = ((await store.read(latestEvent)) ?? 0) - now
    return ahead > SKEW
      ? warn(
          `the latest event is from ${iso(now + ahead)}: the clock is behind now, or was ahead at that time`,
        )
      : ok('the database opens with this master key')
  })

const disk: Check = ({ config: { data_dir, database_url } }) => {
  if (database_url && !existsSync(data_dir)) return skip('the free space: there is no data directory')
  // SQLite's log can take 64 MiB, and a backup takes as much space as the database.
  const { bavail, bsize } = statfsSync(data_dir)
  const free = (bavail * bsize) / GB
  return (free < 0.1 ? fail : free < 1 ? warn : ok)(`${free.toFixed(1)} GB free for ${data_dir}`)
}

const sockets: Check = () => {
  // Only Linux has /proc.
  if (process.platform !== 'linux') return skip('the limit of open files: `ulimit -n` shows it')
  // Each connection takes one open file. The usual default of 1,024 is too small for a public server.
  const limit = Number(/^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1])
  return (limit < 4_096 ? warn : ok)(`${limit} files and connections can be open at once`)
}

const scheme: Check = async ({ config, now, withStore }) => {
  const locked = await withStore(store => lockedOut(config, store)).catch(() => undefined)
  if (locked) return fail(locked)
  const { hostname, protocol } = new URL(config.url)
  if (protocol === 'http:') {
    if (!isLocalHost(hostname))
      return warn(`${config.url}: without https, passwords and tokens are sent unencrypted`)
    return isLocalHost(config.host)
      ? ok('plain http, reachable from this machine only')
      : warn(`plain http, and other machines can connect to ${config.host}: set url to an https address`)
  }
  const certificate = readCertificate(config)
  if (certificate) {
    const left = certificate.expires_at - now
    const until = `this server terminates TLS; its certificate expires at ${iso(certificate.expires_at)}`
    return left < 0 ? fail(until) : left < CERTIFICATE_LEFT ? warn(until) : ok(until)
  }
  const { host, trusted_proxies } = config
  if (trusted_proxies.length === 0)
    return warn(
      'a proxy terminates TLS, but trusted_proxies is empty: set trusted_proxies, or all clients share the address of the proxy',
    )
  return trusted_proxies.every(isLocalHost) && !isLocalHost(host)
    ? warn(
        `a proxy on this machine terminates TLS, but other machines can connect to ${host}, over plain http: set host to 127.0.0.1`,
      )
    : ok('a trusted proxy terminates TLS')
}

const mail: Check = async ({ config: { smtp_url, mail_from }, withStore }) => {
  if (!smtp_url || !mail_from) {
    const is = (offer: typeof offersRegistration) => withStore(offer).catch(() => false)
    const lost = [
      (await is(offersRegistration)) ? ', and nobody can register' : '',
      (await is(offersEmailCodes)) ? ', and users get no sign-in codes' : '',
    ].join('')
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

const themes: Check = ({ config, withStore }) =>
  withStore(async store => {
    const findings = checkThemes(config, await store.read(usedThemes))
    return findings.length > 0 ? warn(findings.join('; ')) : ok('all themes in use exist')
  })

const HELD =
  'webhooks and event streams wait, because a transaction has been open for more than a minute in a database of the PostgreSQL server: pg_stat_activity and pg_prepared_xacts show this transaction'

const webhooks: Check = ({ now, withStore }) =>
  withStore(async store => {
    if (await store.read(q => areEventsHeld(q, now - MINUTE))) return warn(HELD)
    const names = await store.read(q => troubledWebhooks(q, NAMED))
    return names.length === 0
      ? ok('no webhook fails')
      : warn(`events do not arrive at ${names.join(', ')}: the deliveries of each webhook say why`)
  })

/** The checks of the server. A command on its machine makes all of them except `sockets`. */
export const checks = { files, modes, database, themes, disk, sockets, scheme, mail, webhooks }

/** Seconds for which the event loop may be held before the check warns. Users notice half a second. */
const LONG_HOLD = 0.5

/**
 * Returns the finding about the event loop from the text of the metrics. Returns undefined when the text
 * lacks the gauge of the event loop.
 */
export const judgeLoop = (metrics: string): Finding | undefined => {
  // Several workers have a sample each.
  const samples = [...metrics.matchAll(new RegExp(`^${EVENT_LOOP_HOLD}(?:\\{.*\\})? (\\S+)$`, 'gm'))]
  if (samples.length === 0) return undefined
  const held = Math.max(...samples.map(([, seconds]) => Number(seconds)))
  const found = `the longest hold of the event loop in the last minute was ${held.toFixed(3)} s`
  return held > LONG_HOLD ? warn(`${found}, and all requests waited`) : ok(found)
}

/** Runs a check. When the check throws, the finding is `fail`. */
export const runCheck = async (check: Check, checked: Inspected): Promise<Finding> => {
  try {
    return await check(checked)
  } catch (error) {
    if (!(error instanceof Error)) return fail(`the check could not be made (${error})`)
    // The messages of these errors are written for operators.
    if (error instanceof ConfigError || error instanceof StorageError) return fail(error.message)
    const { code, path } = error as NodeJS.ErrnoException
    return fail(path ? `${path} cannot be read (${code})` : `the check could not be made (${error.message})`)
  }
}

const names = [...(Object.keys(checks) as (keyof typeof checks)[]), 'loop'] as const

const Health = z
  .object({
    version: z.string().describe('Version of the server.'),
    data: z
      .array(
        z.object({
          name: z.enum(names).describe('What was checked.'),
          state: z
            .enum(['ok', 'warn', 'fail', 'skip'])
            .describe(
              '`ok`: works. `warn`: the operator should know. `fail`: does not work. `skip`: not checked.',
            ),
          text: z
            .string()
            .describe('The finding and what to do, in English, as `gatehouse doctor` prints it.'),
        }),
      )
      .describe('One finding for each check.'),
  })
  .meta({
    id: 'Health',
    description: 'Findings of the checks that `gatehouse doctor` makes.',
    example: {
      version: '1.0.0',
      data: [
        { name: 'database', state: 'ok', text: 'the database opens with this master key' },
        { name: 'mail', state: 'warn', text: 'no mail can be sent: set smtp_url and mail_from' },
      ],
    },
  })

/**
 * Milliseconds for which an answer is reused for further callers, because a check may connect to the mail
 * server.
 */
const KEPT = 30_000

/** Returns the route with which administrators of the instance check the server that answers. */
export const healthRoutes = ({ config, store, clock }: Context): AdminRoute[] => {
  const inspect = async (now: number) => {
    const made: [string, Check][] = [
      ...Object.entries(checks),
      ['loop', () => judgeLoop(store.metrics.render()) ?? skip('the event loop is not watched')],
    ]
    const checked: Inspected = { config, now, withStore: use => use(store) }
    const found = await Promise.all(
      made.map(async ([name, check]) => ({ name, ...(await runCheck(check, checked)) })),
    )
    return { version: VERSION, data: found }
  }
  let kept: { from: number; answer: ReturnType<typeof inspect> } | undefined
  return [
    route({
      id: 'getHealth',
      method: 'GET',
      path: '/health',
      permission: 'settings:read',
      instance_only: true,
      summary: 'Check the server that answers: its files, database, mail, certificate and webhooks',
      status: 200,
      answer: Health,
      handle: () => {
        const now = clock.now()
        // A time before `from` shows that the clock was set back.
        if (!kept || now < kept.from || now >= kept.from + KEPT) kept = { from: now, answer: inspect(now) }
        return kept.answer
      },
    }),
  ]
}

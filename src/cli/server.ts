import { createApp } from '#src/app.ts'
import type { LoadedConfig } from '#src/config.ts'
import { lockedOut } from '#src/directory/organizations/store.ts'
import { SECOND } from '#src/lib/duration.ts'
import type { Logger } from '#src/lib/log.ts'
import { VERSION } from '#src/lib/version.ts'
import { checkNames, createInstance, needsAdmin } from '#src/operations/first-start.ts'
import { DRAIN_MS, startHousekeeping } from '#src/operations/housekeeping.ts'
import { lockAround, removeRestoreCopy } from '#src/storage/sqlite/lock.ts'
import { hasInstance, openInstance } from './instance.ts'
import { listen } from './listen.ts'
import { isTerminal, openLog } from './log.ts'

/**
 * Milliseconds that a stop waits for PostgreSQL to answer the last writes. A stop waits for SQLite without a
 * limit, because only the local disk can delay SQLite.
 */
const LAST_WRITES_MS = 250
/** Milliseconds that a stop waits for the trace collector, short enough to stop within 2 s. */
const LAST_SPANS_MS = 250

/** Facts about a started server, for the ready line and the banner. */
export interface Ready {
  url: string
  port: number
  data_dir: string
  admin_client_file: string | undefined
  /** Link that creates the first administrator. */
  set_up: string | undefined
}

/** Duties of one process of the server. */
export interface Part {
  /**
   * True for a single process, and for the one worker that applies the seed file and makes the set-up link.
   */
  isFirst: boolean
  /**
   * True when the process upgrades an older schema of the database. If false, the start fails when the schema
   * is older.
   */
  upgrades: boolean
  /** Called when the process begins to answer requests. */
  onReady(ready: Ready, log: Pick<Logger, 'warn'>): void
  /** Returns the function that makes the content of `/metrics`. `own` returns the metrics of this process. */
  metrics?(own: () => string): () => Promise<string>
}

/** Runs one process of the server. The process ends with code 0 when the server has stopped. */
export const serveAlone = async (
  { config: given, warnings }: LoadedConfig,
  { isFirst, upgrades, onReady, metrics }: Part,
): Promise<void> => {
  const { log, flush, close } = await openLog(given.log_level, given.workers > 1)
  if (isFirst) for (const warning of warnings) log.warn({ event: 'config' }, warning)
  // The seed file is checked before the store is opened. The names of the first admin and of the admin client
  // in the settings are also checked. A mistake therefore leaves no new instance.
  const seed = isFirst && given.seed_file && (await import('./seed-file.ts')).readSeedFile(given.seed_file)
  await checkNames(given)
  // A worker that may not upgrade the schema joins a running server, so the instance already exists.
  if (seed && upgrades && !(await hasInstance(given)))
    await (await import('./rehearsal.ts')).rehearse(given, seed)

  // The socket is opened before the app exists, because the issuer contains the port. With port 0 the port is
  // unknown until the socket is open. Requests that arrive before the app exists wait for it.
  const app = Promise.withResolvers<Awaited<ReturnType<typeof createApp>>>()
  const open = () => listen(given, log, async (request, server) => (await app.promise).fetch(request, server))
  // Only SQLite needs a lock, because several servers may share a PostgreSQL database.
  const [listener, unlock] = given.database_url ? [open(), () => {}] : lockAround(given.data_dir, open)
  if (given.database_url) removeRestoreCopy(given.data_dir)
  // SIGHUP would end the process if there were no handler, so the handler is also set without a certificate.
  process.on('SIGHUP', async () => {
    listener.reload()
    ;(await app.promise).context.places.drop()
  })
  const url = given.port === 0 ? given.url.replace(/:0$/, `:${listener.port}`) : given.url
  const config = { ...given, url }
  if (isFirst && config.url.startsWith('http://')) warnInsecure(config.url, log)

  const opened = await openInstance(config, log, { migrate: upgrades })
  const tracing = config.otel_exporter_otlp_endpoint
    ? (await import('#src/observability/tracing.ts')).openTracing(opened)
    : undefined
  const instance = tracing?.core ?? opened
  const first = await createInstance(instance)
  const changes = seed
    ? await (await import('#src/seed/apply.ts')).applySeed(instance, seed, { keep_metadata: true })
    : []
  const running = await createApp(instance, {
    wrapKeys: tracing?.keys,
    metrics: metrics?.(() => instance.store.metrics.render()),
  })
  app.resolve(running)
  listener.answer(tracing?.requests(running.fetch, running.routeOf) ?? running.fetch)
  const stopHousekeeping = startHousekeeping(running.context)

  // The signal handler is installed before the ready line is printed, because the reader of that line may
  // stop the server at once.
  const stopped = stopSignal()
  flush()
  const set_up =
    isFirst && (await needsAdmin(instance))
      ? await (await import('#src/links/links.ts')).createSetUpLink(instance)
      : undefined
  const { admin_client_file } = first
  onReady({ url, port: listener.port, data_dir: config.data_dir, admin_client_file, set_up }, log)
  // The changes by the seed are logged after the banner, so that many changes do not delay the banner.
  for (const change of changes) log.info({ event: 'seed', ...change })
  if (isFirst && (!config.smtp_url || !config.mail_from))
    log.info(
      { event: 'config' },
      'no mail is sent: set smtp_url and mail_from to enable password resets and notices of changes',
    )
  const locked = isFirst && (await lockedOut(config, instance.store))
  if (locked) log.warn({ event: 'config' }, locked)
  // The memory that only the start needed is freed one second after the start.
  setTimeout(() => Bun.gc(true), SECOND).unref()

  await stopped
  await Promise.race([Promise.all([stopHousekeeping(), listener.stop()]), Bun.sleep(DRAIN_MS)])
  const closed = instance.store.close()
  await (config.database_url ? Promise.race([closed, Bun.sleep(LAST_WRITES_MS)]) : closed)
  unlock()
  await Promise.race([tracing?.close(), Bun.sleep(LAST_SPANS_MS)])
  log.info({ event: 'stopped' })
  await close()
  process.exit(0)
}

/**
 * Reports to systemd that the server is ready (Type=notify):
 * https://www.freedesktop.org/software/systemd/man/latest/sd_notify.html
 */
export const tellServiceManager = (log: Pick<Logger, 'warn'>): void => {
  if (!process.env.NOTIFY_SOCKET) return
  try {
    const child = Bun.spawn(['systemd-notify', '--ready', `--pid=${process.pid}`], {
      stdio: ['ignore', 'ignore', 'ignore'],
    })
    child.unref()
  } catch {
    // Podman passes NOTIFY_SOCKET to containers, but a container usually lacks systemd-notify.
    log.warn(
      { event: 'service_manager' },
      'NOTIFY_SOCKET is set, but systemd-notify is not installed: the service manager is not notified',
    )
  }
}

/**
 * Prints JSON lines for a program, or a short block on a terminal. The set-up link is printed, not logged,
 * because only the operator may see it.
 */
export const announce = ({ url, port, data_dir, admin_client_file, set_up }: Ready): void => {
  const ms = Math.round(performance.now())
  if (!isTerminal()) {
    console.log(JSON.stringify({ event: 'ready', url, port, ms }))
    if (admin_client_file) console.log(JSON.stringify({ event: 'admin_client', file: admin_client_file }))
    if (set_up) console.log(JSON.stringify({ event: 'set_up', url: set_up, minutes: 30 }))
    return
  }
  const rows: [string, string][] = [
    ['Ready', `${url}  (${ms} ms)`],
    ['Data', data_dir],
  ]
  if (admin_client_file)
    rows.push(['Admin client', `${admin_client_file}  (id and secret for the admin API)`])
  if (set_up)
    rows.push(
      ['First admin', set_up],
      ['', 'works once, for 30 minutes; `gatehouse user link` prints a new one'],
    )
  console.log(`\n  \u001b[1mGatehouse ${VERSION}\u001b[0m\n`)
  for (const [name, value] of rows) console.log(`  \u001b[2m${name.padEnd(14)}\u001b[0m${value}`)
  console.log()
}

const warnInsecure = (url: string, log: { warn(details: object, text: string): void }): void => {
  const local = /^http:\/\/(localhost|127\.0\.0\.1|\[::1\])(:|$)/.test(url)
  if (!local)
    log.warn(
      { event: 'config', url },
      'plain http on a public address: passwords and tokens are sent unencrypted',
    )
}

/**
 * Resolves at the first SIGTERM or SIGINT. Later signals are ignored, because without a handler they would
 * end the process at once. They are usual: systemd signals the workers and their supervisor, which signals
 * the workers again, and the launcher of npm repeats Ctrl-C.
 */
export const stopSignal = (): Promise<void> =>
  new Promise(resolve => {
    process.on('SIGTERM', () => resolve())
    process.on('SIGINT', () => resolve())
  })

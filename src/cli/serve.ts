import type { Logger } from 'pino'
import { createApp } from '#src/app.ts'
import { loadConfig } from '#src/config.ts'
import { SECOND } from '#src/lib/duration.ts'
import { VERSION } from '#src/lib/version.ts'
import { createSetUpLink } from '#src/links/links.ts'
import { checkNames, createInstance, needsAdmin } from '#src/operations/first-start.ts'
import { startHousekeeping } from '#src/operations/housekeeping.ts'
import { lockAround } from '#src/storage/sqlite/lock.ts'
import { openInstance } from './instance.ts'
import { rememberStart } from './last-start.ts'
import { listen } from './listen.ts'
import { openLog } from './log.ts'

/** Milliseconds for requests in flight after SIGTERM; the process ends within 2 s. */
const DRAIN_MS = 1_500
const LAST_SPANS_MS = 250

/** Runs the server. Resolves once it has stopped. */
export const serve = async (options: { config?: string }): Promise<void> => {
  const { config: given, warnings } = loadConfig(process.env, options.config)
  const { log, flush, close } = await openLog(given.log_level)
  for (const warning of warnings) log.warn({ event: 'config' }, warning)
  // Before the store is opened, so that a mistake in the seed file or a name leaves no new instance behind.
  const seed = given.seed_file && (await import('./seed-file.ts')).readSeedFile(given.seed_file)
  checkNames(given)
  if (seed) await (await import('./rehearsal.ts')).rehearseFirst(given, seed)

  // With port 0 the issuer is known only after the socket is open; earlier requests wait for the app.
  const app = Promise.withResolvers<Awaited<ReturnType<typeof createApp>>>()
  const open = () => listen(given, log, async (request, server) => (await app.promise).fetch(request, server))
  // Several servers may share a PostgreSQL database.
  const [listener, unlock] = given.database_url ? [open(), () => {}] : lockAround(given.data_dir, open)
  process.on('SIGHUP', async () => {
    listener.reload()
    ;(await app.promise).context.places.drop()
  })
  const isUnknown = given.port === 0 && given.url.endsWith(':0')
  const config = isUnknown ? { ...given, url: `http://localhost:${listener.port}` } : given
  if (config.url.startsWith('http://')) warnInsecure(config.url, log)

  const opened = await openInstance(config, log)
  const tracing = config.otel_exporter_otlp_endpoint
    ? (await import('#src/observability/tracing.ts')).openTracing(opened)
    : undefined
  const instance = tracing?.core ?? opened
  const first = await createInstance(instance)
  const changes = seed ? await (await import('#src/seed/apply.ts')).applySeed(instance, seed) : []
  const running = await createApp(instance, { wrapKeys: tracing?.keys })
  app.resolve(running)
  listener.answer(tracing?.requests(running.fetch, running.routeOf) ?? running.fetch)
  const stopHousekeeping = startHousekeeping(running.context)

  // Installed before the ready line: a reader of that line may stop the server at once.
  const stopped = stopSignal()
  rememberStart(config, listener.port)
  flush()
  announce({ url: config.url, port: listener.port, ms: Math.round(performance.now()) }, config.data_dir, {
    admin_client_file: first.admin_client_file,
    set_up: (await needsAdmin(instance)) ? await createSetUpLink(instance) : undefined,
  })
  // After the banner, which would otherwise scroll away.
  for (const change of changes) log.info({ event: 'seed', ...change })
  if (!config.smtp_url || !config.mail_from)
    log.info(
      { event: 'config' },
      'no mail is sent: set smtp_url and mail_from to enable password resets and notices of changes',
    )
  // Releases the memory that only the start needed, after the first requests.
  setTimeout(() => Bun.gc(true), SECOND).unref()

  tellServiceManager(log)

  await stopped
  stopHousekeeping()
  await Promise.race([listener.stop(), Bun.sleep(DRAIN_MS)])
  await instance.store.close()
  unlock()
  await Promise.race([tracing?.close(), Bun.sleep(LAST_SPANS_MS)])
  log.info({ event: 'stopped' })
  await close()
  process.exit(0)
}

/**
 * Reports readiness to systemd (Type=notify):
 * https://www.freedesktop.org/software/systemd/man/latest/sd_notify.html
 */
const tellServiceManager = (log: Pick<Logger, 'warn'>): void => {
  if (!process.env.NOTIFY_SOCKET) return
  try {
    const child = Bun.spawn(['systemd-notify', '--ready', `--pid=${process.pid}`], {
      stdio: ['ignore', 'ignore', 'ignore'],
    })
    child.unref()
  } catch {
    // Podman passes NOTIFY_SOCKET to containers, which have no systemd-notify.
    log.warn(
      { event: 'service_manager' },
      'NOTIFY_SOCKET is set, but systemd-notify is not installed: the service manager is not notified',
    )
  }
}

/**
 * Prints JSON lines for programs, a short block at a terminal. The set-up link is for the operator only, so
 * it is not logged.
 */
const announce = (
  ready: { url: string; port: number | undefined; ms: number },
  data_dir: string,
  first: { admin_client_file: string | undefined; set_up: string | undefined },
): void => {
  if (!process.stdout.isTTY) {
    console.log(JSON.stringify({ event: 'ready', ...ready }))
    if (first.admin_client_file)
      console.log(JSON.stringify({ event: 'admin_client', file: first.admin_client_file }))
    if (first.set_up) console.log(JSON.stringify({ event: 'set_up', url: first.set_up, minutes: 30 }))
    return
  }
  const rows: [string, string][] = [
    ['Ready', `${ready.url}  (${ready.ms} ms)`],
    ['Data', data_dir],
  ]
  if (first.admin_client_file)
    rows.push(['Admin client', `${first.admin_client_file}  (id and secret for the admin API)`])
  if (first.set_up)
    rows.push(
      ['First admin', first.set_up],
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

const stopSignal = (): Promise<void> =>
  new Promise(resolve => {
    process.once('SIGTERM', () => resolve())
    process.once('SIGINT', () => resolve())
  })

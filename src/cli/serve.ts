import type { Server } from 'bun'
import { createSetUpLink } from '#src/account/links.ts'
import { createApp } from '#src/app.ts'
import { loadConfig } from '#src/config.ts'
import { seedInstance } from '#src/operations/first-start.ts'
import { startHousekeeping } from '#src/operations/housekeeping.ts'
import { lockInstance } from '#src/storage/lock.ts'
import { openInstance } from './instance.ts'
import { openLog } from './log.ts'

/** Above the limits of every family of routes: those answer with their own 413, the socket's answer is a bare one. */
const SOCKET_BODY = 2 * 1024 * 1024
const IDLE_SECONDS = 30
/** After SIGTERM requests in flight have this long; the process is gone within 2 s (decisions.md section 7). */
const DRAIN_MS = 1_500

/** The server for keeps. Resolves when it has been stopped. */
export const serve = async (options: { config?: string }): Promise<void> => {
  const { config, warnings } = loadConfig(process.env, options.config)
  const { log, flush } = await openLog(config.log_level)
  for (const warning of warnings) log.warn({ event: 'config' }, warning)
  const unlock = lockInstance(config.data_dir)

  // With port 0 the issuer is known only once the socket is: requests that come before wait for the app.
  const app = Promise.withResolvers<Awaited<ReturnType<typeof createApp>>>()
  const listener = Bun.serve({
    hostname: config.host,
    port: config.port,
    maxRequestBodySize: SOCKET_BODY,
    idleTimeout: IDLE_SECONDS,
    ...(config.tls_cert &&
      config.tls_key && { tls: { cert: Bun.file(config.tls_cert), key: Bun.file(config.tls_key) } }),
    fetch: async (request, server) => (await app.promise).fetch(request, server),
  })
  if (config.port === 0 && config.url.endsWith(':0')) config.url = `http://localhost:${listener.port}`
  if (config.url.startsWith('http://')) warnInsecure(config.url, log)

  const instance = await openInstance(config, log)
  const first = await seedInstance(instance)
  const running = await createApp(instance)
  app.resolve(running)
  listener.reload({ fetch: (request: Request, server: Server<unknown>) => running.fetch(request, server) })
  const stopHousekeeping = startHousekeeping(running.context)

  flush()
  console.log(
    JSON.stringify({
      event: 'ready',
      url: config.url,
      port: listener.port,
      ms: Math.round(performance.now()),
    }),
  )
  if (first.admin_client_file)
    log.info(
      { event: 'admin_client', file: first.admin_client_file },
      'the first admin client was written to this file',
    )
  if (first.needs_admin)
    log.info(
      { event: 'set_up', url: await createSetUpLink(instance) },
      'open this link once, within 30 minutes, to create the first admin',
    )

  await stopSignal()
  stopHousekeeping()
  await Promise.race([listener.stop(), Bun.sleep(DRAIN_MS)])
  await instance.store.close()
  unlock()
  log.info({ event: 'stopped' })
  flush()
  process.exit(0)
}

const warnInsecure = (url: string, log: { warn(details: object, text: string): void }): void => {
  const local = /^http:\/\/(localhost|127\.0\.0\.1|\[::1\])(:|$)/.test(url)
  if (!local)
    log.warn(
      { event: 'config', url },
      'plain http on a public address: passwords and tokens travel unprotected',
    )
}

const stopSignal = (): Promise<void> =>
  new Promise(resolve => {
    process.once('SIGTERM', () => resolve())
    process.once('SIGINT', () => resolve())
  })

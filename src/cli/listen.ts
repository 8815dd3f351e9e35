import type { Server } from 'bun'
import { type Config, ConfigError } from '#src/config.ts'
import { socketOptions } from '#src/http/socket.ts'
import { SECOND } from '#src/lib/duration.ts'
import type { Logger } from '#src/lib/log.ts'
import { iso } from '#src/lib/text.ts'
import { type Certificate, readCertificate } from '#src/operations/certificate.ts'

/**
 * Milliseconds between two checks of the certificate files. The interval is short, so that a renewed
 * certificate is used within seconds. A check costs little: it reads and parses the two files.
 */
const CHECK_INTERVAL = 2 * SECOND

type Handler = (request: Request, server: Server<unknown>) => Response | Promise<Response>

interface Listener {
  port: number
  /** Sets the handler of all further requests. */
  answer(handler: Handler): void
  /**
   * Loads a certificate that was replaced on the disk. If the new certificate is unusable, the reason is
   * logged and the old certificate stays in use.
   */
  reload(): void
  /** Resolves when the requests in flight have been answered. */
  stop(): Promise<void>
}

/**
 * Opens the server socket with the certificate of the settings. A Bun server cannot change its certificate. A
 * second server therefore takes over the port with the new certificate, while the first server finishes its
 * requests. A client that is in a handshake at that moment has to retry.
 *
 * @throws ConfigError when the address or the certificate cannot be used
 */
export const listen = (config: Config, log: Logger, first: Handler): Listener => {
  let handler = first
  let certificate = readCertificate(config)
  if (certificate && certificate.expires_at < Date.now())
    log.warn({ event: 'certificate' }, `the certificate expired at ${iso(certificate.expires_at)}`)
  if (certificate && config.workers === 1) freePort(config)
  let server = explainError(config, () => open(config, log, config.port, certificate, handler))
  const port = server.port ?? config.port
  const closing = new Set<Promise<void>>()

  const use = (next: Certificate): void => {
    const old = server
    server = open(config, log, port, next, handler)
    certificate = next
    const closed = old.stop().then(() => void closing.delete(closed))
    closing.add(closed)
    log.info({ event: 'certificate', expires_at: iso(next.expires_at) }, 'a new certificate is in use')
  }
  /**
   * Reason for which the last check refused the certificate. Empty after a check without an error. The next
   * check logs its reason only if the reason differs from this one.
   */
  let refused = ''
  const reload = (): void => {
    try {
      const next = readCertificate(config)
      if (next && next.expires_at < Date.now())
        throw new ConfigError(`tls_cert: ${config.tls_cert} has expired.`)
      if (next && !isSame(next, certificate)) use(next)
      refused = ''
    } catch (error) {
      const { message } = error as Error
      if (message !== refused)
        log.error(
          { event: 'certificate', reason: message },
          'the new certificate is not used; the old one stays',
        )
      refused = message
    }
  }
  const watch = certificate && setInterval(onceSettled(config, reload), CHECK_INTERVAL)
  watch?.unref()

  return {
    port,
    answer: next => {
      handler = next
      server.reload({ fetch: next })
    },
    reload,
    stop: async () => {
      clearInterval(watch)
      await Promise.all([server.stop(), ...closing])
    },
  }
}

const open = (
  { host, workers }: Config,
  log: Logger,
  port: number,
  certificate: Certificate | undefined,
  fetch: Handler,
): Server<unknown> =>
  Bun.serve({
    ...hostnameOf(host),
    port,
    ...socketOptions(log),
    ...(certificate && { tls: { cert: certificate.cert, key: certificate.key } }),
    ...((certificate || workers > 1) && { reusePort: true }),
    fetch,
  })

/**
 * Omits the hostname for `::`: Bun then listens on IPv6 and IPv4, or on IPv4 alone on a machine without IPv6.
 */
const hostnameOf = (host: string): { hostname?: string } => (host === '::' ? {} : { hostname: host })

const isSame = (a: Certificate, b: Certificate | undefined): boolean => a.cert === b?.cert && a.key === b.key

/**
 * Returns a check that calls `reload` when the certificate files have changed. The check waits until the
 * files have stayed the same for one interval. The two files are replaced one after the other, and a file may
 * be half written.
 */
const onceSettled = (config: Config, reload: () => void): (() => void) => {
  const readBoth = (): string => {
    try {
      const found = readCertificate(config)
      return `${found?.cert}${found?.key}`
    } catch (error) {
      return (error as Error).message
    }
  }
  let before = readBoth()
  let loaded = before
  return () => {
    const now = readBoth()
    if (now === before && now !== loaded) {
      loaded = now
      reload()
    }
    before = now
  }
}

/**
 * Returns the port of the settings, or a free port if the settings have port 0. Opens and closes a socket
 * without SO_REUSEPORT, to test that no other program uses the port. The server's own sockets cannot show
 * this: they set SO_REUSEPORT, so opening them succeeds even if another program uses the port with
 * SO_REUSEPORT.
 *
 * @throws ConfigError when the port is in use, or the address cannot be used
 */
export const freePort = (config: Config): number =>
  explainError(config, () => {
    const server = Bun.serve({
      ...hostnameOf(config.host),
      port: config.port,
      fetch: () => new Response(),
    })
    const { port } = server
    server.stop(true)
    return port ?? config.port
  })

const explainError = <T>({ host, port }: Config, start: () => T): T => {
  try {
    return start()
  } catch (error) {
    const { code, message } = error as Error & { code?: string }
    const at = `${host.includes(':') ? `[${host}]` : host}:${port}`
    if (code === 'EADDRINUSE')
      throw new ConfigError(
        `GATEHOUSE_PORT: ${at} is in use by another program. Stop it, or choose another port.`,
      )
    if (/^(?:EADDRNOTAVAIL|EINVAL|ENOENT)/.test(message))
      throw new ConfigError(`GATEHOUSE_HOST: ${host} is not an address of this machine.`)
    if (code === 'EACCES') throw new ConfigError(`GATEHOUSE_PORT: this user may not listen on port ${port}.`)
    throw new ConfigError(`cannot listen on ${at}: ${message}`)
  }
}

import type { Server } from 'bun'
import type { Logger } from 'pino'
import { type Config, ConfigError } from '#src/config.ts'
import { socketOptions } from '#src/http/socket.ts'
import { SECOND } from '#src/lib/duration.ts'
import { iso } from '#src/lib/text.ts'
import { type Certificate, readCertificate } from './certificate.ts'

/** How often the files of the certificate are looked at. */
const LOOK = 2 * SECOND

type Handler = (request: Request, server: Server<unknown>) => Response | Promise<Response>

interface Listener {
  port: number
  /** Who answers from now on. */
  answer(handler: Handler): void
  /** Takes up a certificate that was replaced on the disk. One that cannot be used is logged, and the old one stays. */
  reload(): void
  /** Settles when what is in flight has been answered. */
  stop(): Promise<void>
}

/**
 * The socket of the server, with the certificate of the settings. A Bun server keeps the certificate that it began with:
 * for another one a second server takes over the port, and the first answers what it has and closes; who is amid a
 * handshake at that moment has to try again. Throws ConfigError.
 */
export const listen = (config: Config, log: Logger, first: Handler): Listener => {
  let handler = first
  let certificate = readCertificate(config)
  if (certificate && certificate.runs_out < Date.now())
    log.warn({ event: 'certificate' }, `the certificate ran out at ${iso(certificate.runs_out)}`)
  if (certificate) requireFree(config)
  let server = orSay(config, () => open(config, log, config.port, certificate, handler))
  const port = server.port ?? config.port
  const closing = new Set<Promise<void>>()

  const use = (next: Certificate): void => {
    const old = server
    server = open(config, log, port, next, handler)
    certificate = next
    const closed = old.stop().then(() => void closing.delete(closed))
    closing.add(closed)
    log.info({ event: 'certificate', runs_out: iso(next.runs_out) }, 'another certificate is in use')
  }
  /** The reason why a changed certificate is not used, said once. */
  let refused = ''
  const reload = (): void => {
    try {
      const next = readCertificate(config)
      if (next && next.runs_out < Date.now())
        throw new ConfigError(`tls_cert: ${config.tls_cert} has run out.`)
      if (next && !isSame(next, certificate)) use(next)
      refused = ''
    } catch (error) {
      const { message } = error as Error
      if (message !== refused)
        log.error({ event: 'certificate', reason: message }, 'the certificate that was in use stays')
      refused = message
    }
  }
  const watch = certificate && setInterval(whenSettled(config, reload), LOOK)
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
  { host }: Config,
  log: Logger,
  port: number,
  certificate: Certificate | undefined,
  fetch: Handler,
): Server<unknown> =>
  Bun.serve({
    ...hostnameOf(host),
    port,
    ...socketOptions(log),
    ...(certificate && { tls: { cert: certificate.cert, key: certificate.key }, reusePort: true }),
    fetch,
  })

/** All addresses: without a name Bun takes those of both kinds, and goes on with IPv4 where the machine has nothing else. */
const hostnameOf = (host: string): { hostname?: string } => (host === '::' ? {} : { hostname: host })

const isSame = (a: Certificate, b: Certificate | undefined): boolean => a.cert === b?.cert && a.key === b.key

/**
 * Calls `reload` once the files have been seen changed, and then the same for a whole interval: they are two, and may be
 * half written.
 */
const whenSettled = (config: Config, reload: () => void): (() => void) => {
  const look = (): string => {
    try {
      const found = readCertificate(config)
      return `${found?.cert}${found?.key}`
    } catch (error) {
      return (error as Error).message
    }
  }
  let before = look()
  let taken = before
  return () => {
    const now = look()
    if (now === before && now !== taken) {
      taken = now
      reload()
    }
    before = now
  }
}

/** A port that servers may share would be shared with strangers too: first it has to be nobody's. */
const requireFree = (config: Config): void =>
  orSay(config, () => {
    Bun.serve({ ...hostnameOf(config.host), port: config.port, fetch: () => new Response() }).stop(true)
  })

const orSay = <T>({ host, port }: Config, start: () => T): T => {
  try {
    return start()
  } catch (error) {
    const { code, message } = error as Error & { code?: string }
    const at = `${host.includes(':') ? `[${host}]` : host}:${port}`
    if (code === 'EADDRINUSE') throw new ConfigError(`GATEHOUSE_PORT: ${at} is in use by another program.`)
    if (/^(?:EADDRNOTAVAIL|ENOENT)/.test(message))
      throw new ConfigError(`GATEHOUSE_HOST: ${host} is no address of this machine.`)
    if (code === 'EACCES') throw new ConfigError(`GATEHOUSE_PORT: this user may not listen on port ${port}.`)
    throw new ConfigError(`can't listen on ${at}: ${message}`)
  }
}

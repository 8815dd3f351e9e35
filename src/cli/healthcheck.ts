import { ConfigError } from '#src/config.ts'
import { loadServerConfig } from './last-start.ts'

/**
 * Requests /readyz of the server on this machine, or of `url`. Container images without curl use this command
 * as their health check.
 *
 * @throws ConfigError for an invalid `url`; Error when the server is not ready or does not answer
 */
export const healthcheck = async (options: { config?: string; url?: string }): Promise<void> => {
  if (options.url !== undefined && !URL.canParse(options.url))
    throw new ConfigError('--url: must be a URL such as http://localhost:8080.')
  const base = options.url?.replace(/\/+$/, '') ?? loadServerConfig(options).local_url
  try {
    // The certificate is not verified, because it names the public host and not an address of this machine.
    // The request and its answer contain no secret.
    const answer = await fetch(`${base}/readyz`, {
      signal: AbortSignal.timeout(5_000),
      tls: { rejectUnauthorized: false },
    })
    if (answer.ok) return
    throw new Error(`not ready: ${base}/readyz answered ${answer.status}`)
  } catch (error) {
    throw new Error(
      error instanceof Error && error.message.startsWith('not ready')
        ? error.message
        : `no answer from ${base}`,
    )
  }
}

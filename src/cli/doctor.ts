import type { Config } from '#src/config.ts'
import { silentLog } from '#src/lib/log.ts'
import { VERSION_LINE } from '#src/lib/version.ts'
import {
  type Check,
  checks,
  type Finding,
  fail,
  type Inspected,
  judgeLoop,
  ok,
  runCheck,
  SKEW,
  skip,
  warn,
} from '#src/operations/health.ts'
import { openExisting } from './instance.ts'
import { hasDatabase, loadServerConfig, readLastStart, setNames } from './last-start.ts'
import { print } from './print.ts'

/**
 * Milliseconds to wait for the answer of the server, the same as the default limit of the server's outbound
 * calls.
 */
const TIMEOUT = 5_000

/** Returns the error code of a failed connection, such as ECONNREFUSED, or a short reason. */
const reasonOf = (error: unknown): string => {
  // The `code` of a timeout is a number.
  const { code, name, message } = error as Error & { code?: unknown }
  return typeof code === 'string' ? code : name === 'TimeoutError' ? 'no answer in time' : message
}

/** Matches the error codes of a certificate that this machine does not accept. */
const UNTRUSTED = /CERT|ISSUER|SIGNATURE|ALTNAME/

/**
 * Compares the version of this executable with the schema of the database and with the server that was
 * started last.
 */
const version: Check = async ({ config, withStore }) => {
  if (!hasDatabase(config)) return ok(VERSION_LINE)
  // `withStore` throws for a schema that is older or newer than this executable.
  await withStore(async () => {})
  const started = readLastStart(config.data_dir)?.version
  return started === undefined || started === VERSION_LINE
    ? ok(`${VERSION_LINE}; the database has the schema of this version`)
    : warn(`this is ${VERSION_LINE}, but ${started} was started last: restart the server`)
}

/** The limit of this process may differ from that of the server. */
const sockets: Check = () => skip('the limit of open files: the console shows that of the server')

const address: Check = async ({ config: { url } }) => {
  const sent_at = Date.now()
  const answer = await fetch(`${url}/.well-known/openid-configuration`, {
    signal: AbortSignal.timeout(TIMEOUT),
    redirect: 'manual',
  }).catch(reasonOf)
  if (typeof answer === 'string')
    return fail(
      UNTRUSTED.test(answer)
        ? `the certificate of ${url} is not trusted here (${answer}): use a certificate that names this host, from an authority that clients trust`
        : `${url} cannot be reached (${answer}): is the server running?`,
    )
  const { issuer } = ((await answer.json().catch(() => undefined)) ?? {}) as { issuer?: unknown }
  if (issuer !== url)
    return fail(
      `the server at ${url} is not this Gatehouse: ${issuer === undefined ? `status ${answer.status}` : `its issuer is ${String(issuer)}`}`,
    )
  const skew = Math.abs(Date.parse(answer.headers.get('date') ?? '') - sent_at)
  return skew > SKEW + 1_000
    ? warn(`${url} answers, but its clock differs by ${Math.round(skew / 1_000)} s`)
    : ok(`${url} answers`)
}

/**
 * Checks the event loop by the metrics of the server. The check uses the address on this machine, because a
 * proxy at the public address should not pass `/metrics` on. If the server itself terminates TLS, the check
 * uses the public address, because the certificate names only that address.
 */
const loop = async ({ url, metrics_token }: Config, local_url: string): Promise<Finding> => {
  const metrics = `${local_url.startsWith('http:') ? local_url : url}/metrics`
  const answer = await fetch(metrics, {
    signal: AbortSignal.timeout(TIMEOUT),
    redirect: 'manual',
    headers: metrics_token === undefined ? {} : { authorization: `Bearer ${metrics_token}` },
  }).catch(reasonOf)
  if (typeof answer === 'string')
    return skip(
      `the event loop: ${UNTRUSTED.test(answer) ? 'correct the certificate' : 'start the server'} for this check`,
    )
  return (
    judgeLoop(await answer.text().catch(() => '')) ??
    skip(
      `the event loop: ${metrics_token === undefined ? 'set metrics_token' : "give this command the server's metrics_token"} for this check, because ${metrics} is closed`,
    )
  )
}

/** Checks that are skipped while no database exists, each with the text that the output shows for it. */
const needInstance: Record<string, string> = {
  modes: 'the modes of the files',
  themes: 'the themes in use',
  disk: 'the free space',
  webhooks: 'the webhooks',
}

/**
 * Settings on which a check depends. The check is skipped when the server that was started last has one of
 * them and this command does not, because the finding would be about the settings of this command, not about
 * those of the server.
 */
const needSettings: Record<string, string[]> = {
  scheme: ['host', 'tls_cert', 'trusted_proxies'],
  mail: ['smtp_url', 'mail_from'],
  themes: ['database_url'],
  webhooks: ['database_url'],
}

/**
 * Checks what a running server depends on, and prints a line for each check.
 *
 * @throws Error when a check fails
 */
export const doctor = async (options: { config?: string }): Promise<void> => {
  const { config, local_url, warnings } = loadServerConfig(options)
  for (const warning of warnings) print(`warn  settings  ${warning}`)
  const own = setNames(config)
  const lacking = (readLastStart(config.data_dir)?.settings ?? []).filter(name => !own.includes(name))
  const isMade = hasDatabase(config) || lacking.includes('database_url')
  const checked: Inspected = {
    config,
    now: Date.now(),
    withStore: async use => {
      const { store } = await openExisting(config, silentLog)
      return use(store).finally(() => store.close())
    },
  }
  let failed = 0
  const made = { version, ...checks, sockets, address, loop: () => loop(config, local_url) }
  for (const [name, check] of Object.entries(made)) {
    const subject = isMade ? undefined : needInstance[name]
    const missing = lacking.filter(setting => needSettings[name]?.includes(setting))
    const { state, text } = subject
      ? skip(`${subject}: create an instance with \`gatehouse serve\` for this check`)
      : missing.length > 0
        ? skip(`give this command the server's ${missing.join(' and ')} for this check`)
        : await runCheck(check, checked)
    if (state === 'fail') failed++
    print(`${state.padEnd(4)}  ${name.padEnd(8)}  ${text}`)
  }
  if (failed > 0) throw new Error(failed === 1 ? '1 check failed' : `${failed} checks failed`)
}

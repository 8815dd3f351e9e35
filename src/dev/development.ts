import type { Server } from 'bun'
import type { Context } from '#src/context.ts'
import { errorAnswer, refusalFor } from '#src/http/answer.ts'
import { openCall } from '#src/http/call.ts'
import type { CapturedMail } from '#src/mail/captured.ts'
import type { DevClock } from './clock.ts'
import type { DevState } from './controls.ts'
import type { DevRoutes } from './dev-routes.ts'
import { openFaults } from './faults.ts'
import { hostCheckOf } from './host-check.ts'
import { openRecorder } from './recorder.ts'
import { type Snapshot, takeSnapshot } from './store.ts'

type Fetch<S = Server<unknown>> = (request: Request, server: S) => Response | Promise<Response>
type Next = Fetch<Pick<Server<unknown>, 'requestIP'>>

/** Options of development mode. */
export interface DevelopmentOptions {
  clock: DevClock
  /** Bearer token of the controls. It gives full access to the server. */
  token: string
  /** Client of minted tokens. */
  client_id: string
  mail: CapturedMail
  /** Client secrets of the seed and of the admin client, by client id. */
  secrets?: ReadonlyMap<string, string>
  /** True when the controls accept requests from other machines. */
  remote: boolean
  /** True when other machines can reach the server. Everything below /dev/ then needs the control token. */
  exposed: boolean
  /** Password of the users of the default seed. */
  password: string
  /** Further hosts for which the server accepts requests, besides loopback and the hosts in its settings. */
  dev_hosts?: readonly string[] | undefined
}

/**
 * Wraps the server with the development controls. No setting turns the controls on in production. Only
 * `testing/start.ts` calls this function, and that file refuses the data directory of a production server.
 * The result answers requests for the controls, the pages below /dev/ and the guide. It records all
 * remaining requests. Each is answered by a fault, by a fake provider or by `next`.
 */
export const development = (context: Context, next: Next, options: DevelopmentOptions): Fetch => {
  const { clock, mail, secrets = new Map(), client_id, password, dev_hosts = [] } = options
  // The snapshot takes 8 ms. It is taken shortly after the start. If a request that could change data comes
  // earlier, the snapshot is taken before that request.
  let taking: Promise<Snapshot> | undefined
  const snapshot = () => {
    taking ??= context.store.read(takeSnapshot)
    return taking
  }
  // If the server has stopped by then, the snapshot fails. This failure is harmless.
  setTimeout(() => snapshot().catch(() => {}), SNAPSHOT_MS).unref()
  const state: DevState = {
    context,
    clock,
    mail,
    faults: openFaults(),
    recorder: openRecorder(context),
    snapshot,
    client_id,
    password,
    secrets,
    exposed: options.exposed,
  }
  const warnOfHost = hostWarning(context)
  const check = hostCheckOf(context.config, dev_hosts)
  let routes: Promise<DevRoutes> | undefined
  /** Loads the pages and controls at the first request to one of them. */
  const devRoutes = (): Promise<DevRoutes> => {
    routes ??= import('./dev-routes.ts').then(({ openDevRoutes }) => openDevRoutes(state, check, options))
    return routes
  }

  return async (request, server) => {
    const socket = server.requestIP(request)
    const call = openCall(context, request, socket?.address)
    // The server itself has no address for a request that a page of development mode makes, or whose client
    // did not wait for a delayed answer.
    const forward = (own: Request, handle = next) =>
      recorded(state, own, server, () => handle(own, { requestIP: () => socket }))
    try {
      const url = check.admit(request)
      if (!url.pathname.startsWith('/.well-known/')) await snapshot()
      if (OWN_PATHS.test(url.pathname)) {
        const answer = await devRoutes()
        return check.harden(await answer(call, url, forward))
      }
      warnOfHost(request)
      return await forward(request)
    } catch (error) {
      return check.harden(errorAnswer(call, refusalFor(context, call, error, 'development failed')))
    }
  }
}

/** Paths of development mode: its controls and pages, and the guide. */
const OWN_PATHS = /^\/(?:dev\/|guide(?:\/|$))/

/** Milliseconds between the start and the snapshot. An earlier snapshot would delay the ready line. */
const SNAPSHOT_MS = 200

const FORM = 'application/x-www-form-urlencoded'
/** Maximum `content-length` of a recorded form. The endpoints accept no longer forms (http/body.ts). */
const MAX_FORM_BYTES = 64 * 1024

/**
 * Returns the parameters of the query and the form. The form is read from a clone of the request, so that the
 * handler can still read the body.
 */
const parametersOf = async (request: Request): Promise<URLSearchParams> => {
  const parameters = new URL(request.url).searchParams
  const isForm =
    request.headers.get('content-type')?.startsWith(FORM) &&
    Number(request.headers.get('content-length')) <= MAX_FORM_BYTES
  if (isForm)
    for (const [name, value] of new URLSearchParams(await request.clone().text()))
      parameters.append(name, value)
  return parameters
}

const clientOf = (request: Request, parameters: URLSearchParams): string | undefined => {
  const [, basic] = /^Basic (\S+)$/i.exec(request.headers.get('authorization') ?? '') ?? []
  const [name] = basic ? Buffer.from(basic, 'base64').toString().split(':') : []
  return (
    parameters.get('client_id') ?? (name && (new URLSearchParams(`name=${name}`).get('name') ?? undefined))
  )
}

const recorded = async (
  { context, faults, recorder }: DevState,
  request: Request,
  server: Server<unknown>,
  next: () => Response | Promise<Response>,
): Promise<Response> => {
  const parameters = await parametersOf(request)
  const client_id = clientOf(request, parameters)
  const { pathname: path } = new URL(request.url)
  // A CORS preflight (OPTIONS) gets no fault. A fault is meant for the request that follows the preflight.
  const fault =
    request.method === 'OPTIONS'
      ? undefined
      : await faults.apply({ request, path, client_id }, () => server.timeout(request, 0))
  if (fault) await (await import('./fault-cors.ts')).letPagesRead(context, request, fault, client_id)
  const answer = fault ?? (await next())
  recorder.received({
    method: request.method,
    path,
    client_id: client_id ?? null,
    parameters: Object.fromEntries(parameters),
    status: answer.status,
  })
  // Only the answer to a POST contains a token.
  if (!fault && request.method === 'POST' && path === '/oauth/token' && answer.ok)
    recorder.answered(client_id ?? null, parameters.get('grant_type') ?? '', await answer.clone().json())
  return answer
}

/**
 * Warns once for each host that is neither the issuer's host nor the host of the internal URL. A verifier
 * that is configured with such a host refuses every token, because the issuer differs.
 */
const hostWarning = ({ config, log }: Context) => {
  const known = new Set([config.url, config.internal_url].flatMap(url => (url ? [new URL(url).host] : [])))
  return (request: Request): void => {
    const host = request.headers.get('host')
    if (host === null || known.has(host)) return
    known.add(host)
    log.warn(
      { event: 'host', host, issuer: config.url },
      `a request used the host ${host}, but the issuer is ${config.url}: start the server with --url, or with --internal-url for server-to-server calls`,
    )
  }
}

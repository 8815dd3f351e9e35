import { ConfigError } from '#src/config.ts'
import { serverActor } from '#src/directory/access.ts'
import { type Kind, proposed } from '#src/directory/clients/kinds.ts'
import { CreateClient } from '#src/directory/clients/schema.ts'
import { createClient } from '#src/directory/clients/service.ts'
import { type Application, applicationOf, snippets } from '#src/directory/clients/snippets.ts'
import { AppError } from '#src/lib/app-error.ts'
import { SECOND } from '#src/lib/duration.ts'
import { print } from './print.ts'
import { organizationNamed, type UserOptions, withInstance } from './user.ts'

interface Options extends UserOptions {
  kind: Kind
  redirect?: string[]
  postLogoutRedirect?: string[]
  scope?: string[]
  idTokenOnRefresh?: boolean
  /** False with `--no-consent`. */
  consent: boolean
  json?: boolean
}

/** The argument or option that sets each field. Messages name the argument or option instead of the field. */
const optionOf: Record<string, string> = {
  client_id: 'name',
  redirect_uris: '--redirect',
  post_logout_redirect_uris: '--post-logout-redirect',
  scopes: '--scope',
}

/**
 * Registers an application and prints the values for its configuration. The secret cannot be shown again,
 * because only its hash is stored.
 *
 * @throws ConfigError for wrong arguments, before the instance is opened
 */
export const clientCreate = async (name: string, options: Options): Promise<void> => {
  const input = inputOf(name, options)
  await withInstance(options, async context => {
    const { id: organization_id, slug } = await organizationNamed(context, options.organization)
    const { client, secret } = await createClient(context, { ...input, organization_id }, serverActor).catch(
      error => {
        if (!(error instanceof AppError) || error.code !== 'conflict') throw error
        throw new Error(`${name}: ${error.message} Choose another name; nothing was changed.`)
      },
    )
    const application = applicationOf(context.config.url, { ...client, kind: options.kind }, slug, secret)
    print(options.json ? JSON.stringify(application, null, 2) : report(application))
    if (options.kind === 'service' && client.scopes.includes('admin'))
      console.error(
        `gatehouse: the scope "admin" gives ${name} every permission of an administrator; if you meant a scope of your own service, give it another name`,
      )
    await warnUnlessAnswered(context.config.url)
  })
}

/**
 * Warns when no server with this issuer answers. Otherwise a wrong issuer in an application's settings would
 * be noticed only at a failed login, long after this command.
 */
const warnUnlessAnswered = async (url: string): Promise<void> => {
  const answer = await fetch(`${url}/.well-known/openid-configuration`, {
    signal: AbortSignal.timeout(2 * SECOND),
    redirect: 'manual',
  }).catch(() => undefined)
  const { issuer } = ((await answer?.json().catch(() => undefined)) ?? {}) as { issuer?: unknown }
  if (issuer !== url)
    console.error(
      `gatehouse: ${answer ? `the server at ${url} is not this Gatehouse` : `no server answers at ${url}`}: start Gatehouse with \`gatehouse serve\`, or set GATEHOUSE_URL to its public URL`,
    )
}

const inputOf = (
  name: string,
  { kind, redirect = [], postLogoutRedirect, scope, consent, idTokenOnRefresh }: Options,
): CreateClient => {
  const isService = kind === 'service'
  if (isService && redirect.length > 0)
    throw new ConfigError('--redirect: a service signs no one in. Leave it out, or choose another --kind.')
  if (isService && postLogoutRedirect)
    throw new ConfigError('--post-logout-redirect: a service signs no one in. Leave it out.')
  if (isService && idTokenOnRefresh)
    throw new ConfigError('--id-token-on-refresh: a service signs no one in. Leave it out.')
  const schemeless = redirect.find(uri => /^([\w-]+(\.[\w-]+)+|localhost|\[::1\])(:\d+)?(\/|$)/.test(uri))
  if (schemeless)
    throw new ConfigError(
      `--redirect: the scheme is missing: ${isLoopback(schemeless) ? 'http' : 'https'}://${schemeless}`,
    )
  if (!isService && redirect.length === 0)
    throw new ConfigError(
      '--redirect: missing; name the address of the application that a sign-in returns to.',
    )
  if (kind === 'spa' && redirect.some(uri => !/^https?:/.test(uri)))
    throw new ConfigError(
      '--redirect: a single-page application needs an https address, or http on a loopback host.',
    )
  const parsed = CreateClient.safeParse({
    client_id: name,
    name,
    ...proposed(kind, redirect),
    ...(!isService && !consent && { consent_required: false }),
    ...(postLogoutRedirect && { post_logout_redirect_uris: postLogoutRedirect }),
    ...(scope && { scopes: scope }),
    ...(idTokenOnRefresh && { id_token_on_refresh: true }),
  })
  if (parsed.success) return parsed.data
  // Without --post-logout-redirect the post-logout URI is derived from --redirect. A mistake in the derived
  // URI is a mistake in --redirect too, and only the latter is reported.
  const problems = parsed.error.issues.filter(
    ({ path: [field] }) =>
      optionOf[String(field)] !== undefined && (field !== 'post_logout_redirect_uris' || postLogoutRedirect),
  )
  throw new ConfigError(
    problems.map(({ path: [field], message }) => `${optionOf[String(field)]}: ${message}`).join(' '),
  )
}

const isLoopback = (uri: string): boolean => /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?(\/|$)/.test(uri)

/** Returns the settings, one on each line, followed by the snippets for the kind of the application. */
const report = (application: Application): string => {
  const { client_secret: secret } = application
  const rows: [string, string | undefined][] = [
    ['Issuer', application.issuer],
    ['Discovery URL', application.discovery_url],
    ['Client ID', application.client_id],
    ['Client secret', secret && `${secret}  (shown once: keep it now)`],
    ['Redirect URL', application.redirect_uris.join('\n')],
    ['After logout', application.post_logout_redirect_uris.join('\n')],
    ['Web origin', application.web_origins.join('\n')],
    ['Scopes', application.scopes.join(' ')],
    ['Authorize URL', application.kind === 'service' ? '' : application.authorization_endpoint],
    ['Token URL', application.token_endpoint],
    ['Userinfo URL', application.kind === 'service' ? '' : application.userinfo_endpoint],
    ['Logout URL', application.kind === 'service' ? '' : application.end_session_endpoint],
    ['PKCE', application.kind === 'service' ? '' : 'S256, required'],
  ]
  const width = Math.max(...rows.map(([name]) => name.length)) + 2
  const lines = rows.flatMap(([name, value]) =>
    value ? value.split('\n').map((line, i) => (i === 0 ? name : '').padEnd(width) + line) : [],
  )
  const parts = snippets(application).map(
    ({ title, code }) => `${title}\n\n${code.replace(/^(?=.)/gm, '  ')}`,
  )
  return [
    `Created ${application.client_id} (${application.kind}) in the organization ${application.organization}.`,
    lines.join('\n'),
    ...parts,
  ].join('\n\n')
}

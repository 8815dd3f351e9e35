import type { Context } from '#src/context.ts'
import { findOrganizationBySlug, type Organization } from '#src/directory/organizations/store.ts'
import type { Call } from '#src/http/call.ts'
import { chargeBrowser } from '#src/sign-in/known-browsers.ts'
import { confirmProof, provePassword, WRONG } from '#src/sign-in/password.ts'
import { PASSWORD } from '#src/sign-in/sign-in.ts'
import { advance } from './advance.ts'
import { proceedAs } from './authentication-result.ts'
import { type BrowserSession, type Flow, openStep, type StoredFlow, storeFlow } from './flow.ts'
import { homeOf, nobody, typedSlug } from './login-organization.ts'
import { confirmingUser, loginPage } from './step-pages.ts'

/**
 * Handles the login form: `username`, `password`, `csrf_token`, and `organization` (slug) if a user of any
 * organization may answer the request. One form has all these fields, because password managers fill in one
 * form. An unknown slug gets the answer of a wrong password, after the same work, so that nobody learns which
 * organizations exist.
 */
export const postLogin =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const { browser, flow, form } = await openStep(context, call, 'login')
    // The form that confirms a user has no field for the name. A form with a name comes from a login page
    // that was opened before, such as in another tab.
    const isNamed = form.has('username') && !flow.request.confirm
    const confirming = isNamed ? undefined : await confirmingUser(context, browser, flow)
    const username = confirming?.username ?? form.get('username') ?? ''
    const password = form.get('password')
    const slug = typedSlug(flow, form)
    const home = slug ? undefined : await homeOf(context, flow, username)
    if (home) return continueAt(context, browser, flow, home, username)
    const typed = { username, ...(slug && { organization: slug }) }
    if (!username || !password) {
      const data = { ...typed, error: { code: 'missing' } } as const
      return loginPage(context, browser, flow, undefined, { data, status: 400 })
    }
    const organization = slug ? await findOrganizationBySlug(context.store, slug) : flow.organization
    const { user, refusal } = await provePassword(context, {
      organization_id: (organization ?? flow.organization).id,
      identifier: organization ? username : nobody(slug, username),
      password,
      client_info: call,
    })
    if (organization && user) {
      const own = organization.id === flow.organization.id
      const { stored } = own
        ? { stored: flow }
        : await storeFlow(context, browser, flowAt(flow, organization))
      return proceedAs(context, browser, stored, { user, ...PASSWORD, confirm: tx => confirmProof(tx, user) })
    }
    const { status, headers, ...error } = refusal ?? WRONG
    return loginPage(context, browser, flow, undefined, { data: { ...typed, error }, status, headers })
  }

/**
 * Redirects to the login page of another organization. That page asks for the password again, because a
 * redirect must not contain the password. The redirect is charged like a password (`hash`): finding
 * organizations by trying addresses thus costs as much as guessing passwords.
 */
export const continueAt = async (
  context: Context,
  browser: BrowserSession,
  flow: StoredFlow,
  home: Organization,
  username: string,
): Promise<Response> => {
  await chargeBrowser(context, browser.call, { organization_id: flow.organization.id, kind: 'hash' })
  const { request, ...rest } = flowAt(flow, home)
  const asked = {
    prompts: request.prompts.filter(prompt => prompt !== 'select_account'),
    login_hint: username.trim(),
    // An existing login in that organization may belong to another user.
    another: true,
  }
  return advance(context, browser, { ...rest, request: { ...request, ...asked } }, 'post')
}

const flowAt = ({ client, request }: Flow, organization: Organization): Flow => ({
  // A request that names an API never moves to another organization, because an API belongs to one
  // organization.
  apis: [],
  client,
  organization,
  request: { ...request, choose: false, code_for: undefined, organization_id: organization.id },
  pending: undefined,
  approved: false,
})

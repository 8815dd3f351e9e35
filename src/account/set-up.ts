import { anonymousActor } from '#src/audit/record.ts'
import type { Context } from '#src/context.ts'
import { brandOf } from '#src/directory/organizations/brand.ts'
import { settingsOf } from '#src/directory/organizations/settings.ts'
import { findOrganization } from '#src/directory/organizations/store.ts'
import { removeSetUpLinks } from '#src/directory/users/link-store.ts'
import { checkChosen } from '#src/directory/users/password.ts'
import { CreateUser } from '#src/directory/users/schema.ts'
import { createUser } from '#src/directory/users/service.ts'
import { seeOther } from '#src/http/answer.ts'
import type { Call } from '#src/http/call.ts'
import { loginHash, withCookies } from '#src/http/cookies.ts'
import { DEFAULT_ORGANIZATION } from '#src/lib/ids.ts'
import { refusedEmail } from '#src/links/email-verification.ts'
import { type LinkPage, openLink, openLinkForm } from '#src/links/link-pages.ts'
import type { SetUpPage } from '#src/pages/data.ts'
import { PageError } from '#src/pages/error-page.ts'
import { render } from '#src/pages/render.ts'
import { passwordRules } from '#src/sign-in/new-password.ts'
import { PASSWORD, recordLogin, signIn } from '#src/sign-in/sign-in.ts'
import { newUserErrors, newUserOf } from './new-user.ts'

const firstOrganization = async ({ store }: Context) => {
  const organization = await findOrganization(store, DEFAULT_ORGANIZATION)
  if (!organization) throw new PageError('unavailable', 503)
  return organization
}

const setUpPage = async (
  context: Context,
  call: Call,
  { action, token, csrf_token }: LinkPage,
  refused?: Pick<SetUpPage, 'values' | 'errors' | 'rules'>,
): Promise<Response> => {
  const organization = await firstOrganization(context)
  const rules = passwordRules(settingsOf(organization).password_policy)
  return render(
    'set-up',
    {
      brand: brandOf(context, organization),
      request_id: call.request_id,
      action,
      token,
      csrf_token,
      rules,
      ...refused,
    },
    { locale: call.locale, status: refused ? 400 : 200 },
  )
}

/** Shows the form for the first administrator. The first start of the server prints the link to this form. */
export const getSetUp =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const opened = await openLink(context, call, 'set_up')
    return withCookies(await setUpPage(context, call, opened), opened.cookies)
  }

export const postSetUp =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const opened = await openLinkForm(context, call, 'set_up')
    const organization = await firstOrganization(context)
    const { password_policy } = settingsOf(organization)
    const values = newUserOf(opened.form)
    const input = { ...values, password: opened.form.get('password') ?? '', roles: ['admin'] }
    const broken = checkChosen(password_policy, input.password)
    const errors: NonNullable<SetUpPage['errors']> = {
      ...(await newUserErrors(context, organization.id, values)),
      ...(broken.length > 0 && { password: 'policy' }),
      ...((opened.form.get('password_repeat') ?? input.password) !== input.password && {
        password_repeat: 'mismatch',
      }),
    }
    if (Object.keys(errors).length > 0)
      return setUpPage(context, call, opened, {
        values,
        errors,
        rules: passwordRules(password_policy, broken),
      })
    const login_hash = loginHash(context, call.request)
    const isConsole = context.config.console === 'on'
    let cookie = ''
    const by = { actor: anonymousActor, client_info: call }
    try {
      await createUser(context, CreateUser.parse(input), by, async (tx, user) => {
        await opened.use(tx)
        await removeSetUpLinks(tx)
        const login = await signIn(context, tx, {
          user,
          organization,
          ...PASSWORD,
          client_info: call,
          login_hash,
        })
        cookie = login.cookie
        const begun = { ...user, ...PASSWORD, id: login.login_id, user_id: user.id }
        // If the console is on, the login is recorded when the console exchanges its authorization code.
        if (!isConsole) await recordLogin(context, tx, begun, call)
      })
    } catch (error) {
      const code = refusedEmail(error)
      if (!code) throw error
      // If two copies of the form arrive at the same time, the first one takes the name, and this check
      // refuses the second.
      await context.store.read(opened.check)
      const rules = passwordRules(password_policy)
      return setUpPage(context, call, opened, { values, errors: { email: code }, rules })
    }
    return withCookies(seeOther(isConsole ? '/console' : '/account'), [cookie])
  }

import type { Context } from '#src/context.ts'
import { brandOf } from '#src/directory/organizations/brand.ts'
import { settingsOf } from '#src/directory/organizations/store.ts'
import { seeOther } from '#src/http/answer.ts'
import type { Call } from '#src/http/call.ts'
import { withCookies } from '#src/http/cookies.ts'
import type { ChangePassword } from '#src/pages/data.ts'
import { personOf } from '#src/pages/data.ts'
import { type RenderOptions, render } from '#src/pages/render.ts'
import { logIn } from '#src/sign-in/log-in.ts'
import { chooseNewPassword, passwordRules, replaceOwnPassword } from '#src/sign-in/new-password.ts'
import { accountToken, enter, openForm, type Person, permit } from './person.ts'

const PAGE = '/account/change-password'

const page = (
  context: Context,
  call: Call,
  person: Person,
  { data, ...options }: RenderOptions & { data?: Partial<ChangePassword> } = {},
): Response =>
  render(
    'change-password',
    {
      brand: brandOf(context, person.organization),
      request_id: call.request_id,
      action: PAGE,
      csrf_token: accountToken(context, person),
      reason: 'chosen',
      user: personOf(person.user),
      ask_current: true,
      rules: passwordRules(settingsOf(person.organization).password_policy),
      cancel_url: '/account',
      ...data,
    },
    { locale: call.locale, ...options },
  )

export const getChangePassword =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const person = await enter(context, call, PAGE)
    if (person instanceof Response) return person
    permit(person, 'profile:update')
    return page(context, call, person)
  }

/**
 * Changes the password at the user's own wish: ends all other logins and sessions, and continues this login
 * unchanged.
 */
export const postChangePassword =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const { person, form } = await openForm(context, call, PAGE)
    permit(person, 'profile:update')
    const { user, organization, login_hash, login } = person
    const { password_policy } = settingsOf(organization)
    const options = { user, ask_current: true, client_info: call }
    const { password_hash, again } = await chooseNewPassword(context, password_policy, form, options)
    if (again) return page(context, call, person, again)
    const { cookie } = await context.store.write(async tx => {
      await replaceOwnPassword(context, tx, { user, password_hash, client_info: call })
      const { acr, amr, auth_time, signed_in_at, expires_at: until } = login
      const same = { acr, amr, auth_time, signed_in_at, until }
      return logIn(context, tx, { user, organization, ...same, client_info: call, login_hash })
    })
    return withCookies(seeOther('/account?notice=password_changed'), [cookie])
  }

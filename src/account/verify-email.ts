import type { Context } from '#src/context.ts'
import { brandOf } from '#src/directory/organizations/brand.ts'
import { findOrganization } from '#src/directory/organizations/store.ts'
import { updateUser } from '#src/directory/users/service.ts'
import { findUser } from '#src/directory/users/store.ts'
import type { Call } from '#src/http/call.ts'
import { withCookies } from '#src/http/cookies.ts'
import { PageError } from '#src/http/page-boundary.ts'
import { render } from '#src/http/pages.ts'
import { HOUR } from '#src/lib/duration.ts'
import { enqueueMail } from '#src/mail/outbox.ts'
import { seeOther } from '#src/oauth/advance.ts'
import { checkThrottle, countFailure } from '#src/sign-in/throttle.ts'
import { type LinkPage, openLink, openLinkForm } from './links.ts'
import { openForm, permit } from './person.ts'
import type { Link } from './store.ts'

/** The user whose address the link is about; 410 page once it is no longer theirs. */
const holderOf = async ({ store }: Context, { user_id, organization_id, email }: Link) => {
  const user = user_id && (await store.read(q => findUser(q, organization_id, user_id)))
  const organization = await findOrganization(store, organization_id)
  if (!user || !organization || user.email !== email) throw new PageError('link', 410)
  return { user, organization }
}

const page = async (
  context: Context,
  call: Call,
  { link, action, token, csrf_token }: LinkPage,
  done = false,
): Promise<Response> => {
  const { user, organization } = await holderOf(context, link)
  return render(
    'verify-email',
    {
      brand: brandOf(context, organization),
      request_id: call.request_id,
      email: user.email,
      ...(!done && { form: { action, token, csrf_token } }),
    },
    { locale: call.locale },
  )
}

export const getVerifyEmail =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const opened = await openLink(context, call, 'verify_email')
    return withCookies(await page(context, call, opened), opened.cookies)
  }

/** Whoever has the link has the mailbox. A form, for scanners of mail open every link. */
export const postVerifyEmail =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const opened = await openLinkForm(context, call, 'verify_email')
    const { user } = await holderOf(context, opened.link)
    const by = { actor: { id: user.id, email: user.email }, origin: call }
    await updateUser(context, user.id, { email_verified: true }, by, async (tx, before) => {
      await opened.use(tx)
      if (before.email !== opened.link.email) throw new PageError('link', 410)
    })
    return page(context, call, opened, true)
  }

const OFTEN = { kind: 'window', count: 3, window: HOUR, wait: HOUR } as const

/** Asks for the mail: on the own page, thrice an hour. More often nothing more goes out, and the page says the same. */
export const postSendVerification =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const { person, form: _ } = await openForm(context, call)
    permit(person, 'profile:update')
    if (!context.mail) throw new PageError('not_found', 404)
    const { id: user_id, organization_id, email } = person.user
    const keys = [{ key: `verify:${user_id}`, limit: OFTEN }]
    await context.store.write(async tx => {
      if ((await checkThrottle(context, tx, keys)) > 0) return
      await countFailure(context, tx, keys)
      const mail = { kind: 'verify_email', organization_id, user_id, data: { email } } as const
      await enqueueMail(context, tx, mail, call)
    })
    return seeOther('/account/profile?notice=verification_sent')
  }

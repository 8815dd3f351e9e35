import type { Context } from '#src/context.ts'
import { settingsOf } from '#src/directory/organizations/settings.ts'
import { type AttributeErrors, attributeFields, readAttributes } from '#src/directory/users/attribute-form.ts'
import { ownAttribute } from '#src/directory/users/attributes.ts'
import { UpdateUser } from '#src/directory/users/schema.ts'
import { updateUser } from '#src/directory/users/service.ts'
import type { UserRow } from '#src/directory/users/store.ts'
import { seeOther } from '#src/http/answer.ts'
import type { Call } from '#src/http/call.ts'
import { AppError, retryLater } from '#src/lib/app-error.ts'
import { isSameEmail } from '#src/lib/email.ts'
import { refusedEmail, sendVerification } from '#src/links/email-verification.ts'
import { enqueueNotice } from '#src/mail/outbox.ts'
import type { AccountProfilePage } from '#src/pages/data.ts'
import { type RenderOptions, render } from '#src/pages/render.ts'
import { frameOf, noticeOf } from './frame.ts'
import { openFreshForm, ownPath, permit, requireViewer, type Viewer } from './viewer.ts'

const PAGE = '/account/profile'

/** Fields of the form. The user name is not among them, because only an administrator changes it. */
const fields = ['first_name', 'last_name', 'email'] as const
type Values = Pick<UserRow, (typeof fields)[number]>
type Errors = NonNullable<AccountProfilePage['errors']>

/** A form that was not stored. */
interface Typed extends Pick<AccountProfilePage, 'errors' | 'seconds' | 'picture_error' | 'notice'> {
  values: Values
  form: ReadonlyMap<string, string>
  attribute_errors?: AttributeErrors
}

/** Renders the profile page. If a form was not stored, the page shows its values and errors. */
export const profilePage = (
  context: Context,
  call: Call,
  viewer: Viewer,
  given?: Typed,
  options: RenderOptions = { status: given ? 400 : 200 },
): Response => {
  const { user, organization } = viewer
  const definitions = settingsOf(organization).user_attributes
  const again = given && { form: given.form, errors: given.attribute_errors ?? {} }
  const attributes = attributeFields(definitions, user.attributes, again)
  const { values = user, errors, seconds, picture_error } = given ?? {}
  const told = noticeOf(call, ['saved', 'picture_saved', 'picture_removed', 'verification_sent'])
  // While an address is pending, the form says that a link was sent. After the link was used, the notice
  // `verification_sent` is no longer true.
  const isOutdated = told === 'verification_sent' && Boolean(user.pending_email || user.email_verified)
  const notice = given ? given.notice : isOutdated ? undefined : told
  return render(
    'account-profile',
    {
      ...frameOf(context, call, viewer),
      action: ownPath(call, PAGE),
      ...(context.mail
        ? (user.pending_email || !user.email_verified) && { verify_action: ownPath(call, `${PAGE}/verify`) }
        : { fixed_email: user.email }),
      ...(user.pending_email && { pending_email: user.pending_email }),
      username: user.username,
      picture_action: ownPath(call, '/account/picture'),
      ...(user.picture && { picture: user.picture }),
      ...(picture_error && { picture_error }),
      values: { first_name: values.first_name, last_name: values.last_name, email: values.email },
      ...(errors && { errors }),
      ...(seconds && { seconds }),
      ...(attributes.length > 0 && { attributes }),
      ...(notice && { notice }),
    },
    { locale: call.locale, ...options },
  )
}

/**
 * Shows the form of names, e-mail address and the attributes that the organization shows. Storing the form
 * requires a recent authentication, because the form can change the address, and a mail to the address can
 * reset the password. A new address takes effect when the user confirms it on the page of its verification
 * link. Before that, nobody can sign in with the new address, and the server sends only verification mails to
 * it.
 */
export const getProfile =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const viewer = await requireViewer(context, call, PAGE)
    if (viewer instanceof Response) return viewer
    permit(viewer, 'profile:update')
    return profilePage(context, call, viewer)
  }

export const postProfile =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const opened = await openFreshForm(context, call, {
      page: PAGE,
      change: ['account-profile.title', 'account-profile.submit'],
    })
    if (opened instanceof Response) return opened
    const { viewer, form } = opened
    permit(viewer, 'profile:update')
    const { user, organization } = viewer
    const values = valuesOf(context, user, form)
    const errors = errorsOf(values)
    const own = readAttributes(settingsOf(organization).user_attributes, user.attributes, form)
    const refused = { values, form, attribute_errors: own.errors }
    if (Object.keys({ ...errors, ...own.errors }).length > 0)
      return profilePage(context, call, viewer, { ...refused, errors })
    const { email, ...given } = values
    const names = { ...given, own_attributes: own.changes }
    const isSame = isSameEmail(email, user.email)
    const change = { ...names, ...(isSame ? { email } : { pending_email: email }) }
    const notice = isSame ? 'saved' : 'verification_sent'
    const by = { actor: { id: user.id, email: user.email }, client_info: call }
    try {
      await updateUser(context, user.id, change, by, async (tx, before, changed) => {
        if (!changed.includes('pending_email')) return
        const wait = await sendVerification(context, tx, before, email, call)
        if (wait > 0) throw retryLater('rate_limited', 'Too many verification mails were requested.', wait)
        // A thief may have asked for the change, so the owner gets a notice at the current address.
        await enqueueNotice(context, tx, 'email_change', before, call, { email, to: before.email })
      })
    } catch (error) {
      if (error instanceof AppError && error.code === 'rate_limited') {
        const { status, headers } = error
        // Only the new address needs a mail; the other fields are stored at once.
        await updateUser(context, user.id, names, by)
        const seconds = Number(headers['retry-after'])
        return profilePage(
          context,
          call,
          viewer,
          { ...refused, errors: { email: 'throttled' }, seconds },
          { status, headers },
        )
      }
      const code = refusedEmail(error)
      if (!code) throw error
      return profilePage(context, call, viewer, { ...refused, errors: { email: code } })
    }
    return seeOther(ownPath(call, `${PAGE}?notice=${notice}`))
  }

/** Returns the fields of a form that does not store them, and whether they differ from the profile. */
export const typedProfile = (context: Context, { user, organization }: Viewer, form: Typed['form']) => {
  const values = valuesOf(context, user, form)
  const { changes } = readAttributes(settingsOf(organization).user_attributes, user.attributes, form)
  const differs =
    fields.some(name => values[name] !== user[name]) ||
    Object.entries(changes).some(([name, value]) => value !== ownAttribute(user.attributes, name))
  return { typed: { values, form }, differs }
}

const valuesOf = ({ mail }: Context, user: UserRow, form: ReadonlyMap<string, string>): Values => {
  const value = (name: (typeof fields)[number]) => (form.get(name) ?? '').trim()
  return {
    first_name: value('first_name'),
    last_name: value('last_name'),
    email: mail ? value('email') : user.email,
  }
}

const errorsOf = (values: Values): Errors => {
  const refused = UpdateUser.safeParse(values).error?.issues.map(({ path }) => path[0]) ?? []
  const errors: Errors = {}
  for (const name of fields)
    if (refused.includes(name)) errors[name] = name === 'email' ? 'email' : 'too_long'
  return errors
}

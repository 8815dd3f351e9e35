import { advance } from '#src/authorize/advance.ts'
import { accountRequest, flowOf } from '#src/authorize/flow.ts'
import type { Context } from '#src/context.ts'
import { brandOf } from '#src/directory/organizations/brand.ts'
import { settingsOf } from '#src/directory/organizations/settings.ts'
import { MAX_FACTORS, removeFactor } from '#src/directory/users/factors/service.ts'
import {
  countRecoveryCodes,
  type Factor,
  listFactors,
  renameFactor,
} from '#src/directory/users/factors/store.ts'
import { recordUser } from '#src/directory/users/record.ts'
import { forgetBrowsers } from '#src/directory/users/remembered-browsers.ts'
import { updateUser } from '#src/directory/users/service.ts'
import { endProofs, findUser, type UserRow } from '#src/directory/users/store.ts'
import { isOnlyWayIn, listWaysIn, type WayIn } from '#src/directory/users/ways-in-store.ts'
import { seeOther } from '#src/http/answer.ts'
import type { Call } from '#src/http/call.ts'
import { isLine, iso } from '#src/lib/text.ts'
import { enqueueNotice } from '#src/mail/outbox.ts'
import { type AccountSecurityPage, type MessageKey, pageUserOf } from '#src/pages/data.ts'
import { PageError } from '#src/pages/error-page.ts'
import { render } from '#src/pages/render.ts'
import { organizationIn } from '#src/pages/way-back.ts'
import { listRemembered } from '#src/sessions/remembered-store.ts'
import { revokeMost } from '#src/sessions/service.ts'
import { isOfferedCode } from '#src/sign-in/email-codes.ts'
import { chargeBrowser } from '#src/sign-in/known-browsers.ts'
import { issueRecoveryCodes } from '#src/sign-in/recovery-codes.ts'
import type { Queries } from '#src/storage/store.ts'
import { frameOf, noticeOf } from './frame.ts'
import { openForm, openFreshForm, ownPath, permit, requireViewer, type Viewer } from './viewer.ts'

const PAGE = '/account/security'
const ADD_PATH = '/account/security/add'

const notices = [
  'factor_added',
  'factor_removed',
  'factor_renamed',
  'recovery_code_used',
  'browser_forgotten',
  'email_code_off',
  'email_code_on',
] as const

/**
 * Returns why the user has to keep this factor until another one is added. Returns undefined when the user
 * may remove the factor.
 */
const keptBecause = (
  { organization }: Viewer,
  { factors, ways }: { factors: readonly Factor[]; ways: readonly WayIn[] },
  { id, type }: Factor,
): 'required' | 'only_way_in' | undefined => {
  const { mfa_required, passkey_required } = settingsOf(organization)
  const alike = passkey_required ? factors.filter(factor => factor.type === type) : factors
  const isRequired = passkey_required ? type === 'passkey' : mfa_required
  if (isRequired && alike.length === 1) return 'required'
  return isOnlyWayIn(ways, way => way.by === 'passkey' && way.factor_id === id) ? 'only_way_in' : undefined
}

/** Returns whether codes by mail are on for the user, and whether the user may switch them off. */
const emailCodeOf = (
  { email_code }: UserRow,
  ways: readonly WayIn[],
): NonNullable<AccountSecurityPage['email_code']> => {
  if (!email_code) return 'off'
  return ways.length === 0 ? 'only_way_in' : 'on'
}

/** Shows the security page: password, code by mail, second factors, recovery codes, remembered browsers. */
export const getSecurity =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const viewer = await requireViewer(context, call, PAGE)
    if (viewer instanceof Response) return viewer
    permit(viewer, 'profile:update')
    const { user } = viewer
    const { codes_left, browsers, offers_code, ...held } = await context.store.read(async q => ({
      factors: await listFactors(q, user.id),
      ways: await listWaysIn(q, user),
      codes_left: await countRecoveryCodes(q, user.id),
      browsers: await listRemembered(q, user.id, context.clock.now()),
      offers_code: context.mail !== undefined && (await isOfferedCode(q, user)),
    }))
    const locate = await context.places.open()
    const { factors } = held
    const notice = noticeOf(call, notices)
    return render(
      'account-security',
      {
        ...frameOf(context, call, viewer),
        factors: factors.map(factor => {
          const { id, type, name, created_at, last_used_at } = factor
          const kept = keptBecause(viewer, held, factor)
          return {
            id,
            type,
            name,
            created_at: iso(created_at),
            ...(last_used_at !== null && { last_active_at: iso(last_used_at) }),
            ...(kept && { kept }),
          }
        }),
        codes_left,
        now: context.clock.now(),
        ...(factors.length < MAX_FACTORS && { add_url: ownPath(call, ADD_PATH) }),
        remembered: browsers.map(({ id, user_agent, ip_address, expires_at }) => ({
          id,
          user_agent,
          ip_address,
          location: locate(ip_address, call.locale),
          until: iso(expires_at),
        })),
        forget_action: ownPath(call, '/account/security/forget'),
        remove_action: ownPath(call, '/account/security/remove'),
        rename_action: ownPath(call, '/account/security/rename'),
        codes_action: ownPath(call, '/account/security/codes'),
        has_password: user.password_hash !== null,
        change_password_url: ownPath(call, '/account/change-password'),
        ...(offers_code && { email_code: emailCodeOf(user, held.ways) }),
        email_code_action: ownPath(call, '/account/security/email-code'),
        ...(notice && { notice }),
      },
      { locale: call.locale },
    )
  }

/**
 * Starts the enrolment of another factor. A user who already has factors first proves one of them, as at a
 * login.
 */
export const getAddFactor =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const viewer = await requireViewer(context, call, ADD_PATH, PAGE)
    if (viewer instanceof Response) return viewer
    permit(viewer, 'profile:update')
    const { user, organization, login_hash } = viewer
    if ((await context.store.read(q => listFactors(q, user.id))).length >= MAX_FACTORS)
      return seeOther(ownPath(call, PAGE))
    const own = { enrol: true, hinted_user_id: user.id, back: ownPath(call, `${PAGE}?notice=factor_added`) }
    const flow = await flowOf(context, accountRequest(organization.id, own))
    return advance(context, { call, login_hash }, flow, 'post')
  }

/** Opens a form of the security page. Each of these forms requires a recent authentication. */
const openChange = async (context: Context, call: Call, change: readonly MessageKey[]) => {
  const opened = await openFreshForm(context, call, { page: PAGE, change })
  if (opened instanceof Response) return opened
  const { viewer, form } = opened
  permit(viewer, 'profile:update')
  const { id, email } = viewer.user
  return { viewer, form, user: viewer.user, by: { actor: { id, email }, client_info: call } }
}

export const postRemoveFactor =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const changed = await openChange(context, call, ['account-security.factors', 'account-security.remove'])
    if (changed instanceof Response) return changed
    const { viewer, form, user, by } = changed
    const chosenOf = async (q: Queries) => {
      const factors = await listFactors(q, user.id)
      const factor = factors.find(({ id }) => id === form.get('factor_id'))
      if (!factor) return undefined
      const current = await findUser(q, user.organization_id, user.id)
      const ways = current ? await listWaysIn(q, current) : []
      if (keptBecause(viewer, { factors, ways }, factor)) throw new PageError('bad_request', 400)
      return factor
    }
    const others = { user_id: user.id, except_login_id: viewer.login.id }
    if (await context.store.read(chosenOf))
      await revokeMost(context, others, { ...by, reason: 'factor_removed' })
    await context.store.write(async tx => {
      const factor = await chosenOf(tx)
      if (factor) await removeFactor(context, tx, user, factor.id, by, viewer.login.id)
    })
    return seeOther(ownPath(call, `${PAGE}?notice=factor_removed`))
  }

/**
 * Removes a remembered browser. This change needs no recent authentication, because it only makes later
 * logins stricter.
 */
export const postForgetBrowser =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const { viewer, form } = await openForm(context, call)
    permit(viewer, 'profile:update')
    const { user } = viewer
    const by = { actor: { id: user.id, email: user.email }, client_info: call }
    await context.store.write(tx => forgetBrowsers(context, tx, user, by, form.get('browser_id') ?? ''))
    return seeOther(ownPath(call, `${PAGE}?notice=browser_forgotten`))
  }

/**
 * Turns codes by mail on or off. A user without another way to sign in cannot turn the codes off, because
 * only an administrator could then help the user to sign in again. Existing logins that began with a code
 * continue.
 */
export const postEmailCodeSwitch =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const changed = await openChange(context, call, ['account-security.email_code'])
    if (changed instanceof Response) return changed
    const { form, user, by } = changed
    const email_code = form.get('email_code') === 'on'
    await updateUser(context, user.id, { email_code }, by, async (tx, before) => {
      if (!email_code && emailCodeOf(before, await listWaysIn(tx, before)) === 'only_way_in')
        throw new PageError('bad_request', 400)
    })
    return seeOther(ownPath(call, `${PAGE}?notice=${email_code ? 'email_code_on' : 'email_code_off'}`))
  }

export const postRenameFactor =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const changed = await openChange(context, call, ['account-security.factors', 'account-security.rename'])
    if (changed instanceof Response) return changed
    const { form, user, by } = changed
    const name = (form.get('name') ?? '').trim()
    if (name === '' || name.length > 64 || !isLine(name)) throw new PageError('bad_request', 400)
    await context.store.write(async tx => {
      const id = form.get('factor_id') ?? ''
      const factor = (await listFactors(tx, user.id)).find(each => each.id === id)
      if (!factor || factor.name === name) return
      await renameFactor(tx, user.id, id, name)
      const metadata = { fields: ['factors'], renamed: { factor_id: id, factor_type: factor.type } }
      await recordUser(context, tx, by, 'user.updated', user, metadata)
    })
    return seeOther(ownPath(call, `${PAGE}?notice=factor_renamed`))
  }

/**
 * Issues ten new recovery codes and invalidates the earlier ones. Ends logins in progress, because a thief
 * may have begun a login with an earlier code. A user without a factor gets no codes, because a code replaces
 * a lost factor.
 */
export const postRecoveryCodes =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const changed = await openChange(context, call, ['account-security.codes', 'account-security.new_codes'])
    if (changed instanceof Response) return changed
    const { viewer, user, by } = changed
    await chargeBrowser(context, call, { organization_id: user.organization_id, kind: 'mail' })
    const codes = await context.store.write(async tx => {
      if ((await listFactors(tx, user.id)).length === 0) throw new PageError('bad_request', 400)
      const metadata = { fields: ['recovery_codes'] }
      await recordUser(context, tx, by, 'user.updated', user, metadata)
      await endProofs(tx, user.id)
      await enqueueNotice(context, tx, 'recovery_codes_replaced', user, call)
      return issueRecoveryCodes(context, tx, user.id)
    })
    return render(
      'recovery-codes',
      {
        brand: brandOf(context, viewer.organization),
        request_id: call.request_id,
        user: pageUserOf(user),
        codes,
        address: context.config.url,
        created_at: iso(context.clock.now()),
        action: PAGE,
        organization: organizationIn(call.request.url),
      },
      { locale: call.locale },
    )
  }

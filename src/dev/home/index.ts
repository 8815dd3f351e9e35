import type { DevState } from '#src/dev/controls.ts'
import { seeOther } from '#src/http/answer.ts'
import { readForm } from '#src/http/body.ts'
import type { Call } from '#src/http/call.ts'
import { AppError, notFound } from '#src/lib/app-error.ts'
import type { Access } from './access.ts'
import { actions } from './actions.ts'
import { CALLBACK, openTrials, type Send, TRY } from './callback.ts'
import { LOG, logPage } from './log.ts'
import { MAILBOX, mailboxPage, mailPage } from './mailbox.ts'
import { overviewPage } from './overview.ts'
import { type DevPage, devPage, HOME } from './page.ts'
import { TOOLS, toolsPage } from './tools.ts'
import { WEBHOOKS_PAGE, webhooksPage } from './webhooks.ts'

type Answer = Response | DevPage | undefined

const SIGN_IN = `${HOME}sign-in`
const paths: readonly string[] = [HOME, MAILBOX, LOG, WEBHOOKS_PAGE, TOOLS, TRY, CALLBACK, SIGN_IN]

/** True for the path of a page of development mode. Browsers use the pages, and programs use the controls. */
export const isHome = (pathname: string): boolean =>
  paths.includes(pathname) || pathname.startsWith(`${MAILBOX}/`)

const runAction = async (state: DevState, { request }: Call): Promise<Response> => {
  const form = new URLSearchParams(await readForm(request))
  const name = form.get('action') ?? ''
  const action = Object.hasOwn(actions, name) ? actions[name] : undefined
  if (!action) throw new AppError('invalid_request', 'This form has no such action.')
  await action.run(state, form)
  return seeOther(action.next)
}

/**
 * Returns the handler of the pages below /dev/: overview, mailbox, requests, webhooks, clock and faults, the
 * pages that try a client, and the page that asks for the control token.
 */
export const openHome = (state: DevState, access: Access) => {
  const trials = openTrials(state)

  const show = (url: URL, send: Send): Promise<Answer> | Answer => {
    const { pathname, searchParams } = url
    if (pathname === HOME) return overviewPage(state)
    if (pathname === MAILBOX) return mailboxPage(state)
    if (pathname === LOG) return logPage(state)
    if (pathname === WEBHOOKS_PAGE) return webhooksPage(state)
    if (pathname === TOOLS) return toolsPage(state)
    if (pathname === TRY) return trials.begin(searchParams.get('client_id') ?? '')
    if (pathname === CALLBACK) return trials.arrive(searchParams, send)
    return mailPage(state, pathname.slice(MAILBOX.length + 1))
  }

  const answer = (call: Call, url: URL, send: Send): Promise<Answer> | Answer => {
    const { pathname } = url
    const isOpen = access.isOpen(call, url)
    if (call.request.method === 'GET') return isOpen && pathname !== SIGN_IN ? show(url, send) : access.page
    if (call.request.method !== 'POST') throw new AppError('method_not_allowed', 'GET or POST.')
    access.requireOrigin(call)
    if (pathname === SIGN_IN) return access.signIn(call, url)
    if (!isOpen) return access.page
    if (pathname === CALLBACK) return trials.submit(call, send)
    if (pathname === HOME) return runAction(state, call)
    throw new AppError('method_not_allowed', 'GET.')
  }

  return async (call: Call, url: URL, send: Send): Promise<Response> => {
    const found = await answer(call, url, send)
    if (!found) throw notFound('The page')
    return found instanceof Response ? found : devPage(state.context, found)
  }
}

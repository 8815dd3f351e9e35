import { Elysia } from 'elysia'
import type { Context } from '#src/context.ts'
import type { Call } from '#src/http/call.ts'
import { PageError, pageBoundary } from '#src/pages/boundary.ts'
import { advance } from './advance.ts'
import { getAuthorize, getParked, postAuthorize } from './authorize.ts'
import { postChangePassword } from './change-password.ts'
import { postConsent } from './consent.ts'
import { postEnrol } from './enrol.ts'
import { findFlow, visitorOf } from './flow.ts'
import { postLogin } from './login.ts'
import { postPasskey } from './passkey.ts'
import { getResetPassword, postResetPassword } from './reset-password.ts'
import { postSecondFactor } from './second-factor.ts'
import { postSelectAccount } from './select-account.ts'

/** Where a browser walks. The address of a step names the request: a reload shows whatever step is due by then. */
export const browserRoutes = (context: Context) => {
  const page = (handle: (call: Call) => Promise<Response>) => pageBoundary(context, handle)
  const resume = page(resumeStep(context))
  const raw = { parse: 'none' } as const
  return new Elysia({ strictPath: true })
    .get('/oauth/authorize', page(getAuthorize(context)))
    .post('/oauth/authorize', page(postAuthorize(context)), raw)
    .get('/oauth/authorize/parked', page(getParked(context)))
    .get('/oauth/login', resume)
    .post('/oauth/login', page(postLogin(context)), raw)
    .get('/oauth/reset-password', page(getResetPassword(context)))
    .post('/oauth/reset-password', page(postResetPassword(context)), raw)
    .post('/oauth/passkey', page(postPasskey(context)), raw)
    .get('/oauth/second-factor', resume)
    .post('/oauth/second-factor', page(postSecondFactor(context)), raw)
    .get('/oauth/enrol', resume)
    .post('/oauth/enrol', page(postEnrol(context)), raw)
    .get('/oauth/select-account', resume)
    .post('/oauth/select-account', page(postSelectAccount(context)), raw)
    .get('/oauth/change-password', resume)
    .post('/oauth/change-password', page(postChangePassword(context)), raw)
    .get('/oauth/consent', resume)
    .post('/oauth/consent', page(postConsent(context)), raw)
}

const resumeStep =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const handle = new URL(call.request.url).searchParams.get('request')
    if (!handle) throw new PageError('method', 400)
    const visitor = visitorOf(context, call)
    return advance(context, visitor, await findFlow(context, visitor, handle), 'get')
  }

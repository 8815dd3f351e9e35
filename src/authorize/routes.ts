import type { Context } from '#src/context.ts'
import type { Call } from '#src/http/call.ts'
import { PageError } from '#src/pages/error-page.ts'
import { pageRoutes } from '#src/pages/page-routes.ts'
import { advance } from './advance.ts'
import { postAttributes } from './attributes.ts'
import { getAuthorize, getStoredPost, postAuthorize } from './authorize.ts'
import { postChangePassword } from './change-password.ts'
import { postConsent } from './consent.ts'
import { getEmailCode, postEmailCode } from './email-code.ts'
import { postEnrol } from './enrol.ts'
import { postExcluded } from './excluded.ts'
import { browserSessionOf, findFlow } from './flow.ts'
import { postLogin } from './login.ts'
import { postOfferPasskey } from './offer-passkey.ts'
import { postOtherAccount } from './other-account.ts'
import { postPasskey } from './passkey.ts'
import { getRecover, postRecover } from './recover.ts'
import { getResetPassword, postResetPassword } from './reset-password.ts'
import { postSecondFactor } from './second-factor.ts'
import { postSelectAccount } from './select-account.ts'
import { getSignUp, postSignUp } from './sign-up.ts'
import { postTerms } from './terms.ts'

/**
 * Returns the routes of the interactive login. The URL of a step names the request, and a reload shows the
 * step that is due.
 */
export const browserRoutes = (context: Context) => {
  const resume = resumeStep(context)
  return pageRoutes(context, {
    'GET /oauth/authorize': getAuthorize(context),
    'POST /oauth/authorize': postAuthorize(context),
    'GET /oauth/authorize/replay': getStoredPost(context),
    'GET /oauth/login': resume,
    'POST /oauth/login': postLogin(context),
    'GET /oauth/reset-password': getResetPassword(context),
    'POST /oauth/reset-password': postResetPassword(context),
    'GET /oauth/email-code': getEmailCode(context),
    'POST /oauth/email-code': postEmailCode(context),
    'GET /oauth/sign-up': getSignUp(context),
    'POST /oauth/sign-up': postSignUp(context),
    'POST /oauth/passkey': postPasskey(context),
    'GET /oauth/recover': getRecover(context),
    'POST /oauth/recover': postRecover(context),
    'GET /oauth/second-factor': resume,
    'POST /oauth/second-factor': postSecondFactor(context),
    'GET /oauth/enrol': resume,
    'POST /oauth/enrol': postEnrol(context),
    'GET /oauth/offer-passkey': resume,
    'POST /oauth/offer-passkey': postOfferPasskey(context),
    'POST /oauth/other-account': postOtherAccount(context),
    'GET /oauth/select-account': resume,
    'POST /oauth/select-account': postSelectAccount(context),
    'GET /oauth/change-password': resume,
    'POST /oauth/change-password': postChangePassword(context),
    'GET /oauth/excluded': resume,
    'POST /oauth/excluded': postExcluded(context),
    'GET /oauth/terms': resume,
    'POST /oauth/terms': postTerms(context),
    'GET /oauth/attributes': resume,
    'POST /oauth/attributes': postAttributes(context),
    'GET /oauth/consent': resume,
    'POST /oauth/consent': postConsent(context),
  })
}

const resumeStep =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const handle = new URL(call.request.url).searchParams.get('request')
    if (!handle) throw new PageError('method', 400)
    const browser = browserSessionOf(context, call)
    return advance(context, browser, await findFlow(context, browser, handle), 'get')
  }

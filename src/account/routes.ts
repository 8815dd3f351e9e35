import { Elysia } from 'elysia'
import type { Context } from '#src/context.ts'
import type { Call } from '#src/http/call.ts'
import { pageBoundary } from '#src/pages/boundary.ts'
import { getApplications, postDisconnect } from './applications.ts'
import { postLogins, postOtherLogins, postSessions } from './browsers.ts'
import { getChangePassword, postChangePassword } from './change-password.ts'
import { getData, getDeleted, postDelete, postDownload } from './data.ts'
import { postLink, postUnlink } from './identities.ts'
import { getAccount, getSignedOut, postLogout } from './overview.ts'
import { getProve, PROVE } from './person.ts'
import { getProfile, postProfile } from './profile.ts'
import {
  getAddFactor,
  getSecurity,
  postRecoveryCodes,
  postRemoveFactor,
  postRenameFactor,
} from './security.ts'
import { getSetUp, postSetUp } from './set-up.ts'
import { getSignIn, postSignIn } from './sign-in.ts'
import { getConfirmSignIn, getVerifyEmail, postSendVerification, postVerifyEmail } from './verify-email.ts'

/** A person's own pages, and the pages of single-use links. */
export const accountRoutes = (context: Context) => {
  const page = (handle: (call: Call) => Promise<Response>) => pageBoundary(context, handle)
  const raw = { parse: 'none' } as const
  return new Elysia({ strictPath: true })
    .get('/account', page(getAccount(context)))
    .post('/account/logins', page(postLogins(context)), raw)
    .post('/account/logins/others', page(postOtherLogins(context)), raw)
    .post('/account/sessions', page(postSessions(context)), raw)
    .post('/account/identities/link', page(postLink(context)), raw)
    .post('/account/identities/unlink', page(postUnlink(context)), raw)
    .post('/account/logout', page(postLogout(context)), raw)
    .get('/account/signed-out', page(getSignedOut(context)))
    .get('/account/change-password', page(getChangePassword(context)))
    .post('/account/change-password', page(postChangePassword(context)), raw)
    .get(PROVE, page(getProve(context)))
    .get('/account/profile', page(getProfile(context)))
    .post('/account/profile', page(postProfile(context)), raw)
    .get('/account/applications', page(getApplications(context)))
    .post('/account/applications/disconnect', page(postDisconnect(context)), raw)
    .get('/account/data', page(getData(context)))
    .post('/account/data/download', page(postDownload(context)), raw)
    .post('/account/data/delete', page(postDelete(context)), raw)
    .get('/account/deleted', page(getDeleted(context)))
    .get('/account/security', page(getSecurity(context)))
    .get('/account/security/add', page(getAddFactor(context)))
    .post('/account/security/remove', page(postRemoveFactor(context)), raw)
    .post('/account/security/rename', page(postRenameFactor(context)), raw)
    .post('/account/security/codes', page(postRecoveryCodes(context)), raw)
    .get('/account/set-up', page(getSetUp(context)))
    .post('/account/set-up', page(postSetUp(context)), raw)
    .get('/account/sign-in', page(getSignIn(context, 'sign_in')))
    .post('/account/sign-in', page(postSignIn(context, 'sign_in')), raw)
    .get('/account/reset-password', page(getSignIn(context, 'reset_password')))
    .post('/account/reset-password', page(postSignIn(context, 'reset_password')), raw)
    .get('/account/verify-email', page(getVerifyEmail(context)))
    .get('/account/verify-email/sign-in', page(getConfirmSignIn(context)))
    .post('/account/verify-email', page(postVerifyEmail(context)), raw)
    .post('/account/profile/verify', page(postSendVerification(context)), raw)
}

import type { Context } from '#src/context.ts'
import { pageRoutes } from '#src/pages/page-routes.ts'
import { getApplications, postDisconnect } from './applications.ts'
import { postLogins, postOtherLogins, postSessions } from './browsers.ts'
import { getAccountPassword, postAccountPassword } from './change-password.ts'
import { getContinue } from './continue.ts'
import { getData, getDeleted, postDelete, postDownload } from './data.ts'
import { getHistory } from './history.ts'
import { postLink, postUnlink } from './identities.ts'
import { getInvitationPage, postInvitation } from './invitation.ts'
import { postLanguage } from './language.ts'
import { getAccount, getSignedOut, postAccountLogout } from './overview.ts'
import { postPicture } from './picture.ts'
import { getProfile, postProfile } from './profile.ts'
import {
  getAddFactor,
  getSecurity,
  postEmailCodeSwitch,
  postForgetBrowser,
  postRecoveryCodes,
  postRemoveFactor,
  postRenameFactor,
} from './security.ts'
import { getSetUp, postSetUp } from './set-up.ts'
import { getSignIn, postSignIn } from './sign-in.ts'
import { getConfirmSignIn, getVerifyEmail, postSendVerification, postVerifyEmail } from './verify-email.ts'

/** Returns the routes of the account pages, of single-use links and of the choice of a language. */
export const accountRoutes = (context: Context) => {
  /** Forms that are stored until the user has confirmed who they are. The forms contain no secrets. */
  const continuing = {
    '/account/identities/link': postLink(context),
    '/account/identities/unlink': postUnlink(context),
    '/account/profile': postProfile(context),
    '/account/data/delete': postDelete(context),
    '/account/security/remove': postRemoveFactor(context),
    '/account/security/rename': postRenameFactor(context),
    '/account/security/email-code': postEmailCodeSwitch(context),
    '/account/security/codes': postRecoveryCodes(context),
  }
  return pageRoutes(context, {
    ...Object.fromEntries(Object.entries(continuing).map(([path, handle]) => [`POST ${path}`, handle])),
    'POST /language': postLanguage(context),
    'GET /account': getAccount(context),
    'POST /account/logins': postLogins(context),
    'POST /account/logins/others': postOtherLogins(context),
    'POST /account/sessions': postSessions(context),
    'POST /account/logout': postAccountLogout(context),
    'GET /account/signed-out': getSignedOut(context),
    'GET /account/change-password': getAccountPassword(context),
    'POST /account/change-password': postAccountPassword(context),
    'GET /account/continue': getContinue(context, continuing),
    'GET /account/profile': getProfile(context),
    'POST /account/picture': postPicture(context),
    'GET /account/applications': getApplications(context),
    'POST /account/applications/disconnect': postDisconnect(context),
    'GET /account/history': getHistory(context),
    'GET /account/data': getData(context),
    'POST /account/data/download': postDownload(context),
    'GET /account/deleted': getDeleted(context),
    'GET /account/security': getSecurity(context),
    'POST /account/security/forget': postForgetBrowser(context),
    'GET /account/security/add': getAddFactor(context),
    'GET /account/invitation': getInvitationPage(context),
    'POST /account/invitation': postInvitation(context),
    'GET /account/set-up': getSetUp(context),
    'POST /account/set-up': postSetUp(context),
    'GET /account/sign-in': getSignIn(context, 'sign_in'),
    'POST /account/sign-in': postSignIn(context, 'sign_in'),
    'GET /account/reset-password': getSignIn(context, 'reset_password'),
    'POST /account/reset-password': postSignIn(context, 'reset_password'),
    'GET /account/verify-email': getVerifyEmail(context),
    'GET /account/verify-email/sign-in': getConfirmSignIn(context),
    'POST /account/verify-email': postVerifyEmail(context),
    'POST /account/profile/verify': postSendVerification(context),
  })
}

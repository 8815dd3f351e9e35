import { timingSafeEqual } from 'node:crypto'
import type { Config } from '#src/config.ts'
import type { Core } from '#src/context.ts'
import type { SecretHash } from '#src/lib/secrets.ts'
import { PageError } from './error-page.ts'

/**
 * Purpose of a form. A token for one purpose is refused for every other purpose, so a token from one page
 * cannot post the form of another page.
 */
export type CsrfPurpose =
  | 'login'
  | 'second_factor'
  | 'enrol'
  | 'select_account'
  | 'other_account'
  | 'change_password'
  | 'attributes'
  | 'terms'
  | 'excluded'
  | 'consent'
  | 'account'
  | 'link'
  | 'link_account'
  | 'set_up'
  | 'sign_in'
  | 'email_code'
  | 'recover'
  | 'reset_password'
  | 'verify_email'
  | 'invitation'
  | 'sign_up'
  | 'logout'

const mac = (context: Pick<Core, 'master'>, purpose: CsrfPurpose, holder: SecretHash, subject: string) =>
  context.master.hmac('csrf').update(`${purpose}\0${holder}\0${subject}`).digest('base64url')

/**
 * Issues the hidden `csrf_token` of a form. The token consists of `subject`, a dot, and a MAC over `purpose`,
 * `subject` and `holder`. `subject` is, for example, the handle of the request, and contains no dot. `holder`
 * is the hash of the browser's cookie. The server stores nothing, so a page costs no write.
 */
export const issueCsrf = (
  context: Pick<Core, 'master'>,
  purpose: CsrfPurpose,
  holder: SecretHash,
  subject: string,
): string => `${subject}.${mac(context, purpose, holder, subject)}`

/**
 * Returns the subject of a token that this server issued to this browser for this purpose. A browser whose
 * cookie does not match the token most likely got a new cookie in another tab. The error page therefore says
 * that the form has expired (`expired`), and not that cookies may be switched off (`forbidden`).
 *
 * @param again the URL at which the user can start again after `expired`
 * @throws PageError 403 `forbidden` when the cookie or the token is missing, 403 `expired` when the token
 * does not match
 */
export const verifyCsrf = (
  context: Pick<Core, 'master'>,
  purpose: CsrfPurpose,
  holder: SecretHash | undefined,
  presented: string | undefined,
  again: { retry_url?: string } = {},
): string => {
  const dot = presented?.indexOf('.') ?? -1
  if (holder === undefined || presented === undefined || dot < 0) throw new PageError('forbidden', 403)
  const subject = presented.slice(0, dot)
  const given = Buffer.from(presented.slice(dot + 1))
  const expected = Buffer.from(mac(context, purpose, holder, subject))
  if (given.length !== expected.length || !timingSafeEqual(given, expected))
    throw new PageError('expired', 403, again)
  return subject
}

/**
 * Refuses a form posted from another origin, or from the opaque origin `null`. A request without the header
 * `Origin` is accepted. Such a request does not come from a browser, because browsers send `Origin` with
 * every POST.
 *
 * @throws PageError 403 `forbidden`
 */
export const checkOrigin = (config: Config, request: Request): void => {
  const origin = request.headers.get('origin')
  if (origin !== null && origin !== config.url) throw new PageError('forbidden', 403)
}

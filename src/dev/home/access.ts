import { isLoopbackAddress, isLoopbackHost } from '#src/dev/host-check.ts'
import { seeOther } from '#src/http/answer.ts'
import { readForm } from '#src/http/body.ts'
import type { Call } from '#src/http/call.ts'
import { findCookie, withCookies } from '#src/http/cookies.ts'
import { forbidden, notFound } from '#src/lib/app-error.ts'
import { hashSecret, sameHash } from '#src/lib/secrets.ts'
import { markup } from './markup.ts'
import { type DevPage, HOME } from './page.ts'

const COOKIE = 'dev_controls'

const signIn = (error: string | undefined): DevPage => ({
  title: 'Development',
  status: error === undefined ? 200 : 403,
  body: markup`${error === undefined ? '' : markup`<p role="alert" class="field-error">${error}</p>`}
<form method="post" action="${HOME}sign-in" class="token">
  <label for="token">Control token that the server printed when it started</label>
  <input id="token" name="token" autocomplete="off" required autofocus>
  <button class="button primary small">Continue</button>
</form>`,
})

export type Access = ReturnType<typeof homeAccess>

/**
 * Decides who may open the pages below /dev/. If only this machine can reach the server, the pages are open,
 * because everyone on this machine can already sign in as the administrator with the user picker. Otherwise
 * the browser has to send the control token once. Afterwards a cookie contains a hash that is derived from
 * the token.
 */
export const homeAccess = (token: string, { remote, exposed }: { remote: boolean; exposed: boolean }) => {
  const expected = hashSecret(token)
  const held = hashSecret(`${expected} home`)

  return {
    /**
     * True when the request may open the pages.
     *
     * @throws AppError 404 for a request from another machine when `remote` is not set
     */
    isOpen: (call: Call, url: URL): boolean => {
      const isLocal = isLoopbackAddress(call.ip_address)
      if (!remote && !isLocal) throw notFound('This path')
      if (!exposed && isLoopbackHost(url.hostname)) return true
      const given = findCookie(call.request, COOKIE)
      return given !== undefined && sameHash(hashSecret(given), hashSecret(held))
    },
    /**
     * Refuses a form without an `Origin` header. Browsers send this header with each form. If the header is
     * present, dev/host-check.ts has already checked its value.
     *
     * @throws AppError 403 for such a form
     */
    requireOrigin: ({ request }: Call): void => {
      if (request.headers.get('origin') === null)
        throw forbidden('Only pages of this server may send this form.')
    },
    page: signIn(undefined),
    signIn: async (call: Call, url: URL): Promise<Response | DevPage> => {
      const given = new URLSearchParams(await readForm(call.request)).get('token') ?? ''
      if (!sameHash(hashSecret(given.trim()), expected)) return signIn('This is not the control token.')
      const flags = `Path=/dev/; HttpOnly; SameSite=Strict${url.protocol === 'https:' ? '; Secure' : ''}`
      return withCookies(seeOther(HOME), [`${COOKIE}=${held}; ${flags}`])
    },
  }
}

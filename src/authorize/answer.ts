import type { Context } from '#src/context.ts'
import { checkedName } from '#src/directory/clients/names.ts'
import { brandOf } from '#src/directory/organizations/brand.ts'
import { redirect } from '#src/http/answer.ts'
import type { Call } from '#src/http/call.ts'
import { render } from '#src/pages/render.ts'
import { defaultBrand } from '#src/pages/themes.ts'
import type { AuthorizeTarget } from '#src/protocol/oauth/authorize-request.ts'
import type { OAuthError } from '#src/protocol/oauth/error.ts'
import { withParameters } from '#src/protocol/oauth/redirect-uri.ts'
import type { Flow } from './flow.ts'

/** The target of an answer. Client and organization appear on the page of a form post. */
export interface Addressee {
  readonly request: AuthorizeTarget
  readonly client: Flow['client']
  readonly organization?: Flow['organization']
}

/**
 * Sends parameters to the client by a 302, or by a page that posts them
 * (https://openid.net/specs/oauth-v2-form-post-response-mode-1_0.html). Adds the client's `state`. Also adds
 * `iss`, which prevents mix-up attacks (https://www.rfc-editor.org/rfc/rfc9207).
 */
export const answerClient = (
  context: Context,
  call: Call,
  { request, client, organization }: Addressee,
  parameters: Record<string, string>,
): Response => {
  // Uses the redirect URI of the request instead of the registered one, because a native application listens
  // on any port (https://www.rfc-editor.org/rfc/rfc8252#section-7.3).
  const { redirect_uri, state, response_mode } = request
  const all = { ...parameters, state, iss: context.config.url }
  if (response_mode === 'form_post') {
    const brand = organization ? brandOf(context, organization) : defaultBrand(context)
    const name = client ? checkedName(client, redirect_uri) : ''
    return render(
      'form-post',
      { brand, action: redirect_uri, client: { name }, fields: all },
      { locale: call.locale },
    )
  }
  const location = withParameters(redirect_uri, all)
  return redirect(302, location)
}

/** Sends an error to the client: https://www.rfc-editor.org/rfc/rfc6749#section-4.1.2.1 */
export const answerError = (
  context: Context,
  call: Call,
  addressee: Addressee,
  { code, description }: OAuthError,
): Response => answerClient(context, call, addressee, { error: code, error_description: description })

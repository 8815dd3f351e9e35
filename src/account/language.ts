import type { Context } from '#src/context.ts'
import { seeOther } from '#src/http/answer.ts'
import { readForm } from '#src/http/body.ts'
import type { Call } from '#src/http/call.ts'
import { setCookie, withCookies } from '#src/http/cookies.ts'
import { locales } from '#src/http/locale.ts'
import { DAY, SECOND } from '#src/lib/duration.ts'
import { checkOrigin } from '#src/pages/csrf.ts'
import { parseForm } from '#src/protocol/oauth/parameters.ts'

/** The longest time that browsers keep a cookie, in seconds. */
const KEPT = (400 * DAY) / SECOND

const below = (folder: string, names: string): string[] => names.split(' ').map(name => `${folder}/${name}`)

/** Paths that can be requested again: their GET uses up no link or code. */
const pages: ReadonlySet<string> = new Set([
  '/account',
  ...below(
    '/account',
    'applications change-password data deleted invitation profile reset-password security set-up',
  ),
  ...below('/account', 'sign-in signed-out verify-email'),
  ...below(
    '/oauth',
    'attributes authorize change-password consent enrol excluded link-account login logout recover',
  ),
  ...below('/oauth', 'reset-password second-factor select-account sign-up'),
])

/**
 * Returns path and query of the page that contains the form: the page that a step names in the form, else
 * that of the Referer, else `/account`. A step names its page because a GET cannot show the address of a
 * refused POST.
 */
const pageOf = ({ config }: Context, { request }: Call, named: string | undefined): string => {
  const page = URL.parse(named ?? request.headers.get('referer') ?? '', config.url)
  return page?.origin === config.url && pages.has(page.pathname) ? page.pathname + page.search : '/account'
}

/** Keeps the chosen language in a cookie and returns to the page. An unknown language changes nothing. */
export const postLanguage =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    checkOrigin(context.config, call.request)
    const form = parseForm(await readForm(call.request))
    const language = locales.find(tag => tag === form.get('language'))
    const { config, cookies } = context
    return withCookies(
      seeOther(pageOf(context, call, form.get('page'))),
      language ? [setCookie(config, cookies.language, language, KEPT)] : [],
    )
  }

import type { Context } from '#src/context.ts'
import { seeOther } from '#src/http/answer.ts'
import { readForm } from '#src/http/body.ts'
import type { Call } from '#src/http/call.ts'
import { setCookie, withCookies } from '#src/http/cookies.ts'
import { locales } from '#src/http/locale.ts'
import { DAY, SECOND } from '#src/lib/duration.ts'
import { checkOrigin } from '#src/pages/csrf.ts'
import { wayBack } from '#src/pages/way-back.ts'
import { parseForm } from '#src/protocol/oauth/parameters.ts'

/** The longest time that browsers keep a cookie, in seconds. */
const KEPT = (400 * DAY) / SECOND

/** Keeps the chosen language in a cookie and returns to the page. An unknown language changes nothing. */
export const postLanguage =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    checkOrigin(context.config, call.request)
    const form = parseForm(await readForm(call.request))
    const language = locales.find(tag => tag === form.get('language'))
    const { config, cookies } = context
    return withCookies(
      seeOther(wayBack(config, call.request, form.get('page'))),
      language ? [setCookie(config, cookies.language, language, KEPT)] : [],
    )
  }

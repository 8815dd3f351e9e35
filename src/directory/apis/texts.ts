import type { Queries } from '#src/storage/store.ts'
import { type Api, findApiById } from './store.ts'

/**
 * Returns the texts of the APIs for a scope, joined by ` / `. The language is that of the page, otherwise
 * English, otherwise the first language for which the API has a text. Even a text in a foreign language
 * explains more than the name of the scope. Returns an empty object when no API has a text.
 */
export const describeScope = (
  apis: readonly Pick<Api, 'scopes'>[],
  name: string,
  locale: string,
): { description?: string } => {
  const [language = ''] = locale.split('-')
  const texts = apis.flatMap(({ scopes }) => {
    const own = scopes.find(scope => scope.name === name)?.texts ?? {}
    return own[locale] ?? own[language] ?? own.en ?? Object.values(own)[0] ?? []
  })
  return texts.length > 0 ? { description: [...new Set(texts)].join(' / ') } : {}
}

/**
 * An API, or a scope of an API, in the form that consents have (`consentScopes`). A scope of a client may
 * begin with `api_` too, so the whole id is matched.
 */
const CONSENTED = /^(api_[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12})(?:\/(.+))?$/i

/**
 * Returns the scopes of a consent as text. An API is shown by its name, and a scope of an API by its text or
 * name. Scopes of deleted APIs are left out. Other scopes are returned unchanged.
 */
export const showScopes = async (
  q: Queries,
  scopes: readonly string[],
  locale: string,
): Promise<string[]> => {
  const shown = scopes.map(async scope => {
    const [, id, name] = CONSENTED.exec(scope) ?? []
    if (id === undefined) return scope
    const api = await findApiById(q, id)
    if (!api || name === undefined) return api?.name ?? []
    return describeScope([api], name, locale).description ?? name
  })
  return (await Promise.all(shown)).flat()
}

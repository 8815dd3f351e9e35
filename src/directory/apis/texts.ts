import type { Queries } from '#src/storage/store.ts'
import { type Api, findApiById } from './store.ts'

/**
 * Returns the texts of a scope at the APIs that have it: in the language of the page, else in English, else
 * in the first language. Empty when no API describes it.
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
 * Returns the scopes of a consent as text: names of APIs, and texts or names of their scopes, without those
 * of deleted APIs.
 */
export const showScopes = async (
  q: Queries,
  scopes: readonly string[],
  locale: string,
): Promise<string[]> => {
  const shown = scopes.map(async scope => {
    const [, id, name] = /^(api_[^/]+)(?:\/(.+))?$/.exec(scope) ?? []
    if (id === undefined) return scope
    const api = await findApiById(q, id)
    if (!api || name === undefined) return api?.name ?? []
    return describeScope([api], name, locale).description ?? name
  })
  return (await Promise.all(shown)).flat()
}

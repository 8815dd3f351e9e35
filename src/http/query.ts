import { isRecord } from '#src/lib/json.ts'

/** Returns the query of a request as it was sent, without the leading `?`. */
export const queryOf = ({ url }: Request): string => {
  const start = url.indexOf('?')
  return start < 0 ? '' : url.slice(start + 1)
}

/**
 * Matches `NAME.KEY`. A name with the key `__proto__` does not match, so the name is refused as an unknown
 * parameter.
 */
const NESTED = /^(\w+)\.(?!__proto__$)(.+)$/s

/**
 * Parses the query. A repeated name becomes an array. No schema accepts an array, because the server cannot
 * know which value is meant. `NAME.KEY=value` and `NAME[KEY]=value` set a key of the object NAME. Generated
 * clients send the second form (OpenAPI style `deepObject`).
 */
export const parseQuery = (request: Request): Record<string, unknown> => {
  const text = queryOf(request)
  if (text === '') return {}
  const query: Record<string, unknown> = Object.create(null)
  for (const [name, value] of new URLSearchParams(text)) {
    const [, object, key] = NESTED.exec(name.replace(/^(\w+)\[(.+)\]$/s, '$1.$2')) ?? []
    if (object === undefined || key === undefined) put(query, name, value)
    else {
      const inner = query[object] ?? Object.create(null)
      if (isRecord(inner)) put(inner, key, value)
      query[object] = isRecord(inner) ? inner : [inner, value]
    }
  }
  return { ...query }
}

const put = (query: Record<string, unknown>, name: string, value: string): void => {
  query[name] = name in query ? [query[name], value] : value
}

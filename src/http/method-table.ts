import { AppError } from '#src/lib/app-error.ts'
import type { Call } from './call.ts'

/** Declared paths with their allowed methods. Paths without parameters come first. */
export type MethodTable = { path: string; pattern: RegExp; methods: Set<string> }[]

/**
 * Paths whose GET may use up a single-use value or issue a code. A HEAD request must have no such effect,
 * because mail scanners and link previews send HEAD before a person opens the link.
 */
export const PATHS_WITH_EFFECTS = /^\/(?:oauth|saml|account)\b/

/** Returns the table of the routes. A path with GET has HEAD too, unless its GET may have an effect. */
export const methodTable = (routes: readonly { method: string; path: string }[]): MethodTable => {
  const table = Map.groupBy(routes, ({ path }) => path)
  const pattern = (path: string) =>
    new RegExp(
      `^${path
        .replace(/[.+?^${}()|[\]\\]/g, '\\$&')
        .replace(/:\w+/g, '[^/]+')
        .replace(/\*/g, '.*')}$`,
    )
  return [...table]
    .sort(([a], [b]) => Number(/[:*]/.test(a)) - Number(/[:*]/.test(b)))
    .map(([path, found]) => ({
      path,
      pattern: pattern(path),
      methods: new Set(
        found.flatMap(({ method }) =>
          method === 'GET' && !PATHS_WITH_EFFECTS.test(path) ? ['GET', 'HEAD'] : [method],
        ),
      ),
    }))
}

/** Returns a 405 with `Allow` when the path exists with other methods. Returns a 404 for an unknown path. */
export const unmatchedError = (methods: MethodTable, call: Call): AppError => {
  for (const { pattern, methods: allowed } of methods)
    if (pattern.test(call.path)) {
      const allow = [...allowed].join(', ')
      return new AppError('method_not_allowed', `The allowed methods of this path are ${allow}.`, {
        headers: { allow },
      })
    }
  return new AppError('not_found', 'This path does not exist.')
}

import { loadOnce } from '#src/lib/load-once.ts'
import { type Call, callOf } from './call.ts'
import { type MethodTable, methodTable } from './method-table.ts'
import type { Route } from './routes.ts'

/** Routes that are loaded together, at the first request to one of their paths. */
export interface Section {
  /**
   * Matches the paths of the section. The first section that matches a path serves it. The last section also
   * serves the paths that no section matches.
   */
  paths: RegExp
  load(): Promise<readonly Route[]>
}

/** A section whose routes are loaded. */
export interface OpenSection {
  methods: MethodTable
  fetch(request: Request): Response | Promise<Response>
}

type Refuse = (methods: MethodTable, call: Call, cause?: unknown) => Response | Promise<Response>

/** Prepares the sections. `refuse` answers a request that has no route, or whose handler threw an error. */
export const openSections = (sections: readonly Section[], refuse: Refuse) => {
  const all = sections.map(section => closedSection(section, refuse))
  const [last] = all.slice(-1)
  if (!last) throw new Error('there is no section')
  return {
    sectionOf: (path: string) => all.find(({ paths }) => paths.test(path)) ?? last,
    openAll: () => Promise.all(all.map(section => section.open())),
  }
}

/** Returns a request handler for routes whose paths have no parameters. */
const exactRouter = (
  routes: readonly Route[],
  decline: (request: Request, cause?: unknown) => Response | Promise<Response>,
): OpenSection['fetch'] => {
  const handlers = new Map(routes.map(({ method, path, handle }) => [`${method} ${path}`, handle]))
  return request => {
    const handle = handlers.get(`${request.method} ${callOf(request).path}`)
    if (!handle) return decline(request)
    try {
      const answer = handle({ request, params: {} })
      return answer instanceof Promise ? answer.catch(error => decline(request, error)) : answer
    } catch (error) {
      return decline(request, error)
    }
  }
}

const closedSection = ({ paths, load }: Section, refuse: Refuse) => {
  const open = async (): Promise<OpenSection> => {
    const routes = await load()
    const methods = methodTable(routes)
    const decline = (request: Request, cause?: unknown) => refuse(methods, callOf(request), cause)
    // Loading Elysia takes 8 ms of CPU time, so a section whose paths have no parameters does not load it.
    const fetch = routes.some(({ path }) => /[:*]/.test(path))
      ? (await import('./router.ts')).elysiaRouter(routes, decline)
      : exactRouter(routes, decline)
    section.opened = { methods, fetch }
    return section.opened
  }
  const section = {
    paths,
    opened: undefined as OpenSection | undefined,
    open: loadOnce(open),
  }
  return section
}

import { Elysia } from 'elysia'
import { type Call, callOf } from './call.ts'
import { type MethodTable, methodTable } from './method-table.ts'
import type { mount } from './routes.ts'

/** Routes that are loaded together, at the first request to one of their paths. */
export interface Section {
  /** Matches the paths of the section. The first section that matches a path serves it. */
  paths: RegExp
  load(): Promise<ReturnType<typeof mount>>
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

const closedSection = ({ paths, load }: Section, refuse: Refuse) => {
  let opening: Promise<OpenSection> | undefined
  const open = async (): Promise<OpenSection> => {
    const routes = await load()
    let methods: MethodTable = []
    // The error handler comes first: Elysia applies it only to routes added after it.
    const elysia = new Elysia({ strictPath: true })
      .onError(({ code, error, request }) =>
        refuse(methods, callOf(request), code === 'NOT_FOUND' ? undefined : error),
      )
      .use(routes)
    methods = methodTable(elysia.routes)
    elysia.compile()
    section.opened = { methods, fetch: elysia.fetch }
    return section.opened
  }
  const section = {
    paths,
    opened: undefined as OpenSection | undefined,
    /** A section that could not be loaded is tried again with the next request. */
    open: (): Promise<OpenSection> => {
      opening ??= open().catch(error => {
        opening = undefined
        throw error
      })
      return opening
    },
  }
  return section
}

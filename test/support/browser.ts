import type { TestApp } from './app.ts'

/** A form of a page: hidden and visible fields with their current values, and its submit buttons. */
export interface Form {
  action: string
  isGet: boolean
  fields: Record<string, string>
  buttons: { name: string; value: string }[]
}

/** A page or a redirect: the browser does not follow redirects by itself. */
export interface Page {
  status: number
  headers: Headers
  /** Requested path and query. */
  url: string
  html: string
  heading: string
  /** The `Location` header of a redirect. */
  location: string | undefined
  /** Forms of the page, except the form in the footer. */
  forms: Form[]
  /** The form in the footer that chooses a language. */
  chooser: Form | undefined
}

export interface Browser {
  readonly cookies: Map<string, string>
  /** The Set-Cookie headers of the latest response. */
  readonly received: string[]
  get(path: string, headers?: Record<string, string>): Promise<Page>
  /** Posts as a form of this site does. `headers` replaces headers of this request. */
  post(
    path: string,
    fields: Fields | Uint8Array<ArrayBuffer>,
    headers?: Record<string, string>,
  ): Promise<Page>
  /** Fills in and sends the form of the page that `formOf` selects. */
  submit(page: Page, fields?: Record<string, string>, action?: string): Promise<Page>
  /** Follows redirects within this site. */
  follow(page: Page): Promise<Page>
}

type Fields = Record<string, string> | string

const entities: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" }
export const unescapeHtml = (text: string): string =>
  text.replace(/&(amp|lt|gt|quot|#39);/g, (whole, name) => entities[name] ?? whole)

const attribute = (tag: string, name: string): string | undefined => {
  const value = new RegExp(`\\s${name}="([^"]*)"`).exec(tag)?.[1]
  return value === undefined ? undefined : unescapeHtml(value)
}

const tags = (html: string, name: string): string[] => html.match(new RegExp(`<${name}\\b[^>]*>`, 'g')) ?? []

const named = (tag: string) => {
  const name = attribute(tag, 'name')
  return name === undefined ? [] : [{ name, value: attribute(tag, 'value') ?? '' }]
}

const parseForms = (html: string): Form[] =>
  [...html.matchAll(/(<form\b[^>]*>)(.*?)<\/form>/gs)].map(([, open = '', body = '']) => ({
    action: attribute(open, 'action') ?? '',
    isGet: attribute(open, 'method') === 'get',
    fields: Object.fromEntries(
      tags(body, 'input')
        .flatMap(named)
        .map(({ name, value }) => [name, value]),
    ),
    buttons: tags(body, 'button').flatMap(named),
  }))

const parsePage = async (url: string, response: Response): Promise<Page> => {
  const html = await response.text()
  const [own = '', footer = ''] = html.split('<footer>')
  return {
    status: response.status,
    headers: response.headers,
    url,
    html,
    heading: unescapeHtml(/<h1[^>]*>(.*?)<\/h1>/s.exec(html)?.[1] ?? ''),
    location: response.headers.get('location') ?? undefined,
    forms: parseForms(own),
    chooser: parseForms(footer)[0],
  }
}

const pathOf = (action: string): string => action.split('?')[0] ?? ''

const LEAVE = '/oauth/other-account'

/**
 * Returns the form with this action. The action can be given without its query. By default, returns the first
 * form that does not leave the step.
 */
export const formOf = (page: Page, action?: string): Form => {
  // The form that changes the account comes before the step's own form.
  const form =
    page.forms.find(each =>
      action === undefined ? each.action !== LEAVE : [each.action, pathOf(each.action)].includes(action),
    ) ?? (action === undefined ? page.forms[0] : undefined)
  if (!form)
    throw new Error(`no form ${action ?? ''} on ${page.url}: ${page.status} ${page.heading || page.location}`)
  return form
}

/** A browser with cookies, forms and links. Requests come from `ip` unless they set another address. */
export const openBrowser = (
  app: Pick<TestApp, 'call' | 'context'>,
  { ip = '192.0.2.10', headers: own = {} }: { ip?: string; headers?: Record<string, string> } = {},
): Browser => {
  const cookies = new Map<string, string>()
  const received: string[] = []

  const ask = async (
    path: string,
    init: RequestInit & { headers: Record<string, string> },
  ): Promise<Page> => {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const headers = { accept: 'text/html', ...own, ...(cookie && { cookie }), ...init.headers }
    const response = await app.call(path, { ...init, headers, ip })
    received.splice(0, received.length, ...response.headers.getSetCookie())
    for (const line of received) {
      const [pair = '', ...attributes] = line.split('; ')
      const [name = '', value = ''] = pair.split('=')
      if (attributes.includes('Max-Age=0')) cookies.delete(name)
      else cookies.set(name, value)
    }
    return parsePage(path, response)
  }

  const get: Browser['get'] = (path, headers = {}) => ask(path, { headers })

  const post: Browser['post'] = (path, fields, headers = {}) =>
    ask(path, {
      method: 'POST',
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        origin: app.context.config.url,
        ...headers,
      },
      body:
        typeof fields === 'string' || fields instanceof Uint8Array
          ? fields
          : new URLSearchParams(fields).toString(),
    })

  const submit: Browser['submit'] = (page, fields = {}, action) => {
    const form = formOf(page, action)
    const all = { ...form.fields, ...fields }
    return form.isGet ? get(`${form.action}?${new URLSearchParams(all)}`) : post(form.action, all)
  }

  const follow: Browser['follow'] = async page => {
    let shown = page
    for (let hops = 0; shown.location?.startsWith('/'); hops++) {
      if (hops > 10) throw new Error('redirects without end')
      shown = await get(shown.location)
    }
    return shown
  }

  return { cookies, received, get, post, submit, follow }
}

/** Returns the parameters of a redirect to a client. */
export const answerOf = (page: Page): Record<string, string> => {
  if (page.location === undefined) throw new Error(`no redirect: ${page.status} ${page.heading}`)
  return Object.fromEntries(new URL(page.location).searchParams)
}

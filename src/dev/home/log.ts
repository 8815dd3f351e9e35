import type { DevState } from '#src/dev/controls.ts'
import { markup } from './markup.ts'
import { code, type DevPage, jsonBox, table } from './page.ts'

export const LOG = '/dev/log'
/** Maximum number of requests, and of tokens, on the page. The controls return all records. */
const SHOWN = 100

const time = (at: string) => markup`<time datetime="${at}">${at.slice(11, 23)}</time>`

/** Returns the page of the latest requests and tokens, newest first. */
export const logPage = ({ recorder }: DevState): DevPage => ({
  title: 'Requests and tokens',
  current: LOG,
  body: markup`
<form method="post" action="/dev/"><button class="button secondary small" name="action" value="clear_requests">Clear</button></form>
<h2>Requests</h2>
${table(
  ['Time (UTC)', 'Request', 'Client', 'Status', 'Parameters'],
  recorder
    .requests({})
    .filter(({ path }) => !path.startsWith('/assets/'))
    .slice(-SHOWN)
    .reverse()
    .map(({ at, method, path, client_id, status, parameters }) => [
      time(at),
      code(`${method} ${path}`),
      client_id === null ? markup`–` : code(client_id),
      markup`<span${status >= 400 ? markup` class="bad"` : ''}>${status}</span>`,
      Object.keys(parameters).length === 0
        ? markup`–`
        : markup`<details><summary>Show ${Object.keys(parameters).length}</summary>${jsonBox(parameters)}</details>`,
    ]),
  'No request yet.',
)}
<h2>Tokens</h2>
${table(
  ['Time (UTC)', 'Kind', 'Client', 'Grant', 'Content'],
  recorder
    .tokens({})
    .slice(-SHOWN)
    .reverse()
    .map(({ at, kind, client_id, grant_type, token, claims }) => [
      time(at),
      code(kind),
      client_id === null ? markup`–` : code(client_id),
      code(grant_type),
      markup`<details><summary>${claims ? 'Claims' : 'Token'}</summary>${claims ? jsonBox(claims) : ''}<pre tabindex="0">${token}</pre></details>`,
    ]),
  'No token yet.',
)}`,
})

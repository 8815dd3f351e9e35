import type { DevState } from '#src/dev/controls.ts'
import { endpoints } from '#src/dev/endpoints.ts'
import { iso } from '#src/lib/text.ts'
import { type Html, markup } from './markup.ts'
import { code, type DevPage, table } from './page.ts'

export const TOOLS = '/dev/tools'

const button = (action: string, label: string): Html =>
  markup`<button class="button secondary small" name="action" value="${action}">${label}</button>`

/** Buttons that advance the clock, in milliseconds. */
export const steps: [label: string, ms: number][] = [
  ['+ 1 minute', 60_000],
  ['+ 1 hour', 3_600_000],
  ['+ 1 day', 86_400_000],
  ['+ 30 days', 2_592_000_000],
]

/** Returns the page of clock, faults and reset. */
export const toolsPage = ({ clock, faults }: DevState): DevPage => ({
  title: 'Clock and faults',
  current: TOOLS,
  body: markup`
<h2>Clock</h2>
<p>The server’s time is <time datetime="${iso(clock.now())}"><strong>${iso(clock.now()).slice(0, 19).replace('T', ' ')} UTC</strong></time>${clock.isFrozen() ? ', stopped' : ''}. The lifetimes of tokens, sessions, codes and keys follow this time.</p>
<div class="tools">
${steps.map(([label, ms]) => markup`<form method="post" action="/dev/"><input type="hidden" name="ms" value="${ms}">${button('advance', label)}</form>`)}
<form method="post" action="/dev/">${button('freeze', 'Stop')}</form>
<form method="post" action="/dev/">${button('reset_clock', 'Back to the machine’s time')}</form>
</div>
<h2>Faults</h2>
<p>A fault replaces or delays the answers to the next requests to an endpoint.</p>
${table(
  ['Endpoint', 'Client', 'Fault', 'Requests left'],
  faults
    .list()
    .map(({ endpoint, client_id, times, ...fault }) => [
      code(endpoint),
      client_id === undefined ? markup`all` : code(client_id),
      code(JSON.stringify(fault)),
      markup`${times ?? 'until cleared'}`,
    ]),
  'No fault is set.',
)}
<form method="post" action="/dev/" class="fault">
<p><label for="endpoint">Endpoint</label> <select id="endpoint" name="endpoint">${Object.keys(endpoints).map(
    name => markup`<option${name === 'token' ? markup` selected` : ''}>${name}</option>`,
  )}</select></p>
<p><label for="fault">Fault</label> <select id="fault" name="fault">
<option value="503">status 503</option><option value="500">status 500</option><option value="429">status 429</option>
<option value="hang">no answer</option><option value="reset">connection closed</option><option value="malformed">incomplete JSON</option>
<option value="slow">answer after 5 seconds</option></select></p>
<p><label for="times">Requests</label> <input id="times" name="times" type="number" min="1" max="1000000" value="1" required></p>
<p>${button('fault', 'Set the fault')}</p>
</form>
${faults.list().length > 0 ? markup`<form method="post" action="/dev/">${button('clear_faults', 'Clear all faults')}</form>` : ''}
<h2>Reset</h2>
<p>Returns to the seed: data, clock, faults, requests and mail. The signing keys and the settings of the server stay.</p>
<div class="tools"><form method="post" action="/dev/">${button('reset', 'Reset the server')}</form></div>`,
})

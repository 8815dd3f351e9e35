import { expect, test } from 'bun:test'
import type { Config } from '#src/config.ts'
import { startApp } from '#test/support/app.ts'

const metric = (text: string, name: string): number => {
  const line = text.split('\n').find(candidate => candidate.startsWith(`${name} `))
  return line ? Number(line.slice(name.length + 1)) : 0
}
const localRequest = { headers: { host: 'localhost:8080' } }
const ISSUED = 'gatehouse_tokens_total{grant="client_credentials"}'
const REQUESTS = 'gatehouse_request_duration_seconds_count{family="token"}'

test('RUN-25 counts requests by family, tokens by grant, events by type', async () => {
  const app = await startApp()
  const read = async () => (await app.call('/metrics', localRequest)).text()
  const before = await read()
  const form = { grant_type: 'client_credentials', client_id: 'gatehouse-admin' }
  await app.tokenOf('gatehouse-admin', app.context.config.admin_client_secret ?? '')
  await app.call('/oauth/token', {
    method: 'POST',
    body: new URLSearchParams({ ...form, client_secret: 'x' }),
  })
  const after = await read()
  const more = (name: string) => metric(after, name) - metric(before, name)
  expect(more(ISSUED)).toBe(1)
  expect(more('gatehouse_events_total{type="token.issued"}')).toBe(1)
  expect(more(REQUESTS)).toBe(2)
  expect(more('gatehouse_responses_total{status="4xx"}')).toBe(1)
  expect(more('gatehouse_commits_total{outcome="done"}')).toBeGreaterThan(0)
  expect(metric(after, 'gatehouse_commit_queue')).toBe(0)
  expect(metric(after, 'gatehouse_hash_queue')).toBe(0)
})

test('every line follows the text format, and buckets add up', async () => {
  const app = await startApp()
  const answer = await app.call('/metrics', localRequest)
  expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
  const text = await answer.text()
  for (const line of text.trimEnd().split('\n'))
    expect(line).toMatch(/^# (HELP|TYPE) \w+ .+$|^\w+(\{\w+="[^"]*"(,le="[^"]*")?\})? -?[\d.e+-]+$/)
  const again = await (await app.call('/metrics', localRequest)).text()
  expect(metric(again, 'gatehouse_request_duration_seconds_bucket{family="other",le="+Inf"}')).toBe(
    metric(again, 'gatehouse_request_duration_seconds_count{family="other"}'),
  )
})

test('without a token: only this machine, and not through a proxy on it', async () => {
  const app = await startApp()
  expect((await app.call('/metrics', { ...localRequest, ip: '::1' })).status).toBe(200)
  expect((await app.call('/metrics', { ...localRequest, ip: '192.0.2.1' })).status).toBe(404)
  for (const name of ['x-forwarded-for', 'x-forwarded-host', 'forwarded', 'via', 'x-real-ip'])
    expect(
      (await app.call('/metrics', { headers: { ...localRequest.headers, [name]: '127.0.0.1' } })).status,
    ).toBe(404)
  for (const host of ['id.example.com', 'localhost.example.com', '127.0.0.1.example.com', ''])
    expect((await app.call('/metrics', { headers: { host } })).status).toBe(404)
})

test.each<Partial<Config>>([
  { url: 'https://id.example.com' },
  { host: '0.0.0.0' },
  { host: '::' },
  { trusted_proxies: ['127.0.0.1'] },
])(
  'without a token, nobody where other machines are served: a proxy without headers looks like this machine (%o)',
  async settings => {
    const app = await startApp(settings)
    // nginx sends such a request if it has only the setting `proxy_pass http://127.0.0.1:8080`.
    const status = (await app.call('/metrics', { headers: { host: '127.0.0.1:8080' } })).status
    expect(status).toBe(404)
  },
)

test('with a token: any caller that sends it', async () => {
  const app = await startApp({ metrics_token: 'scrape-me' })
  const status = async (authorization?: string, ip = '192.0.2.1') =>
    (await app.call('/metrics', { ip, ...(authorization && { headers: { authorization } }) })).status
  expect(await status('Bearer scrape-me')).toBe(200)
  expect(await status('Bearer scrape-you')).toBe(404)
  expect(await status('scrape-me')).toBe(404)
  expect(await status(undefined, '127.0.0.1')).toBe(404)
})

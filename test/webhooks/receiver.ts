import { setSystemTime } from 'bun:test'
import { Webhook } from 'standardwebhooks'
import type { Json } from '#test/support/app.ts'

export interface Received {
  id: string
  signature: string
  timestamp: number
  body: Json
  raw: string
  headers: Record<string, string>
}

/** Records webhook calls over HTTP. `state.answer` makes the responses. */
export const startReceiver = () => {
  const received: Received[] = []
  const state = { answer: (_: Received): Response | Promise<Response> => new Response(null, { status: 204 }) }
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: async request => {
      const raw = await request.text()
      const headers = Object.fromEntries(request.headers)
      const one = {
        id: headers['webhook-id'] ?? '',
        signature: headers['webhook-signature'] ?? '',
        timestamp: Number(headers['webhook-timestamp']),
        body: JSON.parse(raw),
        raw,
        headers,
      }
      received.push(one)
      return state.answer(one)
    },
  })
  const target = `127.0.0.1:${server.port}`
  return { received, state, target, url: `http://${target}/hook`, stop: () => server.stop(true) }
}

/**
 * Throws unless the secret signed the message. The library compares the time of the message with the clock of
 * the system.
 */
export const verifyMessage = (secret: string, { raw, headers, timestamp }: Received): unknown => {
  setSystemTime(timestamp * 1000)
  try {
    return new Webhook(secret).verify(raw, headers)
  } finally {
    setSystemTime()
  }
}

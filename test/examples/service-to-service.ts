/**
 * A service that calls another service on its own behalf. Both services must use the same Gatehouse server.
 * Run both with `gatehouse exec -- ./service-to-service.sh bun elysia-api.ts`.
 */
import { createServiceClient } from '@gatehouse/resource-server/client'

const { SERVICE_URL, SERVICE_CLIENT_ID, SERVICE_CLIENT_SECRET, ORDERS_URL } = process.env
if (!SERVICE_URL || !SERVICE_CLIENT_ID || !SERVICE_CLIENT_SECRET || !ORDERS_URL)
  throw new Error('SERVICE_URL, SERVICE_CLIENT_ID, SERVICE_CLIENT_SECRET and ORDERS_URL have to be set')

// One client for the whole service. It caches the token, renews the token in time, and sends one token
// request for all waiting calls.
const orders = createServiceClient({
  issuer: SERVICE_URL,
  clientId: SERVICE_CLIENT_ID,
  clientSecret: SERVICE_CLIENT_SECRET,
  scopes: ['read', 'write'],
})

const call = async (init?: RequestInit): Promise<unknown> => {
  const answer = await orders.fetch(`${ORDERS_URL}/orders`, init)
  if (!answer.ok) throw new Error(`${ORDERS_URL} answered ${answer.status}: ${await answer.text()}`)
  return answer.json()
}

const created = await call({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ item: 'A second book' }),
})
console.log('created', created)

const list = (await call()) as unknown[]
console.log('there are now', list.length)
